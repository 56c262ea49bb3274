"""The responses of a trial's streams, and whether they are valid: nothing lost or unanswered."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from perflab.instruments import Instrument, Load, Observation, Sensor
from perflab.load.checks.load_remarks import of_client_time
from perflab.load.checks.selfcheck import MAX_CLIENT_CPU
from perflab.load.checks.stalls import Sending
from perflab.load.records.message_record import WIRE
from perflab.load.records.times import Number
from perflab.load.records.wakeups import Wakeups
from perflab.recordings import Reason, Remark, Side
from perflab.statistics.in_words import as_share
from perflab.statistics.quantiles import MAX_MOVED_SHARE, OF_TRIALS, hidden_share
from perflab.trials.summary import cpu_share, message_table

NODE = "chat"
STORED_WITHIN_S = 1.0
ACTIONS = ("send", "join", "leave")
# A user who closes a connection may never read the messages of that instant.
MAX_LOST_SHARE = 1e-4
# An unanswered request has no latency and may be among the slowest. This share is a tenth of the
# share beyond a p99, so it moves no reported percentile by much.
MAX_CENSORED_SHARE = 1e-3
# Only an overloaded service refuses for these reasons; any other may be a client's mistake.
OF_OVERLOAD = {"slow_reader", "not_stored"}


@dataclass(frozen=True)
class Phases:
    """The phases of a crowd: instants in ns, 0 if there was none.

    Users join until ``joined_ns``; all act from ``plateau_begin_ns`` (the last user's first action)
    to ``plateau_end_ns`` (the first user's last action).
    """

    begin_ns: int
    joined_ns: int
    plateau_begin_ns: int
    plateau_end_ns: int

    @property
    def plateau_s(self) -> float:
        """Return the plateau's length; 0 without one."""
        return max(0, self.plateau_end_ns - self.plateau_begin_ns) / 1e9

    def on_plateau(self, instants_ns: pd.Series[int]) -> np.ndarray:
        """Return which instants lie on the plateau; none do where there is none."""
        inside = instants_ns.between(self.plateau_begin_ns, self.plateau_end_ns)
        return (inside & (self.plateau_s > 0)).to_numpy(bool)


class _Streams(Sensor["Streams"]):
    def begin(self) -> None:
        """Read the CPU that the service's threads have used so far."""
        self._before = self.scene.counts(NODE)

    def observe(self, load: Load) -> Observation:
        """Return columns, reasons and warnings; nothing if no user recorded anything."""
        counts, deadline = self.scene.counts(NODE), time.monotonic() + STORED_WITHIN_S
        while unstored(counts) and time.monotonic() < deadline:
            time.sleep(0.05)
            counts = self.scene.counts(NODE)
        result = load.result
        if result.messages.empty:
            return Observation()
        observation = observed(result.messages, load.samples, load.services, counts, result.wakeups)
        share = {f"beside_loop_cpu_share_{NODE}": beside_loop_share(self._before, counts)}
        return replace(observation, columns={**observation.columns, **share})


class Streams(Instrument):
    """Sums up a crowd's streams in columns, and judges lost messages."""

    at_work: ClassVar = _Streams


def beside_loop_share(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    """Return the CPU share of threads other than the event loop's, from the service's own counts.

    A second core cannot run more of the service than that, on any machine.
    """
    process_s, loop_s, length_ns = (
        float(after[name] - before[name]) for name in ("cpu_s", "loop_cpu_s", "monotonic_ns")
    )
    return (process_s - loop_s) / (length_ns / 1e9)


def observed(
    messages: pd.DataFrame,
    samples: pd.DataFrame,
    services: Sequence[str],
    counts: Mapping[str, Any],
    wakeups: Sequence[Wakeups] = (),
) -> Observation:
    """Return what the streams of a load show.

    ``counts`` are the server's own. The ``wakeups`` at each worker's event loop show the client's
    part of a latency.
    """
    table = message_table(messages)
    numbers = latencies(table, wakeups)
    columns = stream_columns(table, samples, services)
    for name, number in numbers.items():
        column = name.replace(" ", "_")
        columns |= {f"{column}_ms": number.value, f"{column}_client_ms": number.client_ms}
    remarks = [*judged(table, counts, columns), *of_client_time(numbers)]
    return Observation(
        columns,
        reasons=[remark for remark in remarks if isinstance(remark, Reason)],
        warnings=[remark for remark in remarks if not isinstance(remark, Reason)],
    )


def phases(table: pd.DataFrame) -> Phases:
    """Return the phases of a crowd, from its users' actions."""
    begin_ns = int(table["at_ns"].min())
    acted = table[table["kind"].isin(ACTIONS)].groupby("user")["at_ns"]
    crowd = set(acted.groups)
    joined = table[(table["kind"] == "connected") & table["user"].isin(crowd)]["at_ns"]
    if not crowd or joined.empty:
        return Phases(begin_ns, 0, 0, 0)
    first, last = int(acted.min().max()), int(acted.max().min())
    plateau = (first, last) if last > first else (0, 0)
    return Phases(begin_ns, int(joined.max()), *plateau)


def stream_columns(
    table: pd.DataFrame, samples: pd.DataFrame, services: Sequence[str]
) -> dict[str, Any]:
    """Return a trial's columns about its streams, without latencies; a CPU share of 1 is a core."""
    crowd = phases(table)
    delivered = table[table["kind"] == "delivery"]
    on_plateau = crowd.on_plateau(delivered["at_ns"])
    row: dict[str, Any] = {
        "joined_ns": crowd.joined_ns,
        "plateau_begin_ns": crowd.plateau_begin_ns,
        "plateau_end_ns": crowd.plateau_end_ns,
        "plateau_s": crowd.plateau_s,
        "messages_sent": int((table["kind"] == "send").sum()),
        "messages_delivered": len(delivered),
        "messages_per_s": on_plateau.sum() / crowd.plateau_s if crowd.plateau_s else math.nan,
    }
    for name in services:
        of_service = samples[samples["service"] == name]
        row[f"plateau_cpu_share_{name}"] = cpu_share(
            of_service, crowd.plateau_begin_ns, crowd.plateau_end_ns
        )
        row[f"join_cpu_share_{name}"] = cpu_share(of_service, crowd.begin_ns, crowd.joined_ns)
    share, rate = row[f"plateau_cpu_share_{NODE}"], row["messages_per_s"]
    row["cpu_us_per_message"] = 1e6 * share / rate if rate > 0 else math.nan
    return row | wire_columns(table, rate)


def wire_columns(table: pd.DataFrame, messages_per_s: float) -> dict[str, float]:
    """Return the bytes of messages on the wire, from the users who left in order; else NaN.

    They include the heads of frames, but not those of TCP and IP (40 bytes or more a packet).
    ``wire_share`` is over the bytes of the unpacked messages, ``wire_mbit_per_s`` the load of a
    link on the plateau.
    """
    totals = table[table["kind"] == WIRE]
    received = (table["direction"] == "received") & (table["bytes"] > 0) & (table["kind"] != WIRE)
    messages = table[received & table["user"].isin(totals["user"])]["bytes"]
    wire_bytes = float(totals["bytes"].sum()) if len(messages) else math.nan
    bytes_per_message = wire_bytes / max(1, len(messages))
    return {
        "wire_bytes_per_message": bytes_per_message,
        "wire_share": wire_bytes / max(1.0, float(messages.sum())),
        "wire_mbit_per_s": bytes_per_message * messages_per_s * 8 / 1e6,
    }


def latencies(table: pd.DataFrame, wakeups: Sequence[Wakeups]) -> dict[str, Number]:
    """Return the percentiles of every latency (``delivery p50``...).

    A latency lasts from the planned instant of sending to the receiver's read. ``plateau`` is of
    deliveries planned while all users act, whenever they came (behind a growing queue the slowest
    come late); ``join`` of those planned while users still joined (none if all joined before the
    first message); ``delivery`` of all.
    """
    crowd, sending = phases(table), Sending.of(table, wakeups)
    delivered = table[table["kind"] == "delivery"]
    rows_of = {
        "delivery": delivered,
        "plateau": delivered[crowd.on_plateau(delivered["planned_ns"])],
        "join": delivered[delivered["planned_ns"] <= crowd.joined_ns],
        "all_ping": table[table["kind"] == "pong"],
    }
    numbers_of = {name: sending.times(rows).numbers(OF_TRIALS) for name, rows in rows_of.items()}
    return {
        f"{name} p{share}": numbers[f"p{share}"]
        for name, numbers in numbers_of.items()
        for share in OF_TRIALS
    }


def judged(
    table: pd.DataFrame, counts: Mapping[str, Any], columns: Mapping[str, Any]
) -> Iterator[Remark]:
    """Yield reasons to refuse a trial, whose messages are the ``table``, and warnings.

    ``counts`` is what the server counted itself; ``columns`` are the trial's.
    """
    number = Counter(table["kind"])
    yield from _unanswered(number)
    yield from _lost(number, counts)
    if counts["dropped"]:
        yield _dropped(table, counts["dropped"], counts["delivered"])
    if cut := number["cut"]:
        yield _refused("cut", f"{cut} WebSockets ended before their users left", "server")
    refused = {code: n for code, n in counts["refused"].items() if n}
    side: Side = "server" if refused and set(refused) <= OF_OVERLOAD else "unknown"
    if refused:
        named = ", ".join(f"{n} {code}" for code, n in refused.items())
        yield _refused("refused", f"the server refused frames or users ({named})", side)
    if errors := number["error"]:
        yield _refused("error_frames", f"{errors} frames were answered with an error", side)
    if (client_cpu := columns["plateau_cpu_share_client"]) > MAX_CLIENT_CPU:
        text = f"the client used {as_share(client_cpu)} of a core on the plateau"
        yield _refused(
            "client_cpu", f"{text}: the limit may be the client, not the service", "client"
        )
    if not columns["plateau_s"]:
        yield _warning(
            "no_plateau",
            "there was no plateau: users left before all of them had acted; raise actions or "
            "plateau_s",
        )


def _refused(code: str, text: str, side: Side = "unknown") -> Reason:
    return Reason(code=f"chat.{code}", side=side, text=text)


def _warning(code: str, text: str) -> Remark:
    return Remark(code=f"chat.{code}", text=text)


def _unanswered(number: Counter[str]) -> Iterator[Remark]:
    """Compare answers with requests: an unanswered request has no time in any column."""
    acted = sum(number[kind] for kind in ACTIONS)
    action_answers = number["ack"] + number["error"]
    for name, sent, answered in (
        ("actions", acted, action_answers),
        ("pings", number["ping"], number["pong"]),
    ):
        missing = sent - answered
        text = f"{missing} of {sent} {name} were never answered, so the trial has no times of them"
        if missing < 0:
            yield _refused("answers", f"{sent} {name} had {answered} answers")
        elif missing > MAX_CENSORED_SHARE * max(1, sent):
            yield _refused("unanswered", text, "server")
        elif missing:
            yield _warning("unanswered", text)


def _lost(number: Counter[str], counts: Mapping[str, Any]) -> Iterator[Remark]:
    """Compare the server's counts with the messages sent and read."""
    sent, received = number["send"], counts["received"]
    if received != sent:
        # A server cannot receive more than was sent: then the client's own record is incomplete.
        side: Side = "server" if received < sent else "client"
        text = f"{sent} messages were sent, but the server received {received}"
        yield _refused("received", text, side)
    read, delivered = number["delivery"], counts["delivered"]
    lost = delivered - read
    if lost < 0 or lost > MAX_LOST_SHARE * max(1, delivered):
        text = f"the server delivered {delivered} messages, but the receivers read {read}"
        yield _refused("lost", text, "server" if lost > 0 else "unknown")
    elif lost:
        text = f"users who left did not read {lost} of {delivered} delivered messages"
        yield _warning("lost", text)
    if not_stored := counts["not_stored"]:
        yield _refused("not_stored", f"the server could not store {not_stored} messages", "server")
    if waiting := unstored(counts):
        text = f"{waiting} acknowledged messages were not yet stored when the load was over"
        yield _warning("unstored", text)


def _dropped(table: pd.DataFrame, dropped: int, delivered: int) -> Remark:
    """Judge dropped messages by how far they could move the p99.

    A user who leaves amid a burst causes some. Their latency is unknown; if all of them were slower
    than every delivered message, the p99 would be a higher quantile of the delivered ones.
    """
    read = table[table["kind"] == "delivery"]
    moved = hidden_share((read["at_ns"] - read["planned_ns"]).to_numpy(), dropped, 0.99)
    text = f"the server dropped {dropped} of {delivered + dropped} messages: the p99 could be"
    if moved > MAX_MOVED_SHARE:
        by = f"{moved:.0%} higher" if math.isfinite(moved) else "of any size"
        return _refused("dropped", f"{text} {by}", "server")
    return _warning("dropped", f"{text} {moved:.1%} higher")


def unstored(counts: Mapping[str, Any]) -> int:
    """Return how many acknowledged messages a server has neither stored nor failed to store.

    Only a server that writes behind has any.
    """
    waiting = int(counts["acknowledged"] - counts["stored"] - counts["not_stored"])
    return max(0, waiting)
