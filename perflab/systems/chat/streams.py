"""What a trial's streams show: deliveries, pings, phases, and messages that were lost."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from perflab.instruments import Instrument, Load, Look, Observation, Scene
from perflab.load.checks.stalls import Sending
from perflab.load.checks.times import Number
from perflab.load.checks.trend import of_client_time
from perflab.load.records.looks import Looks
from perflab.load.records.message_record import WIRE
from perflab.statistics.percentiles import OF_TRIALS
from perflab.systems.chat.lost_messages import ACTIONS, judged, unstored
from perflab.trials.summary import cpu_share, message_table

STORED_WITHIN_S = 1.0


@dataclass(frozen=True)
class Phases:
    """When a crowd was what: instants in ns, 0 where there was none.

    Users join from ``begin_ns`` to ``joined_ns``; all of them act from ``plateau_begin_ns`` (the
    last one's first action) to ``plateau_end_ns`` (the first one's last action).
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
        found: np.ndarray = (inside & (self.plateau_s > 0)).to_numpy(bool)
        return found


class Streams(Instrument):
    """Sums up a crowd's streams into columns, and judges what was lost."""

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _Streams(scene)


class _Streams(Look):
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._before: dict[str, dict[str, Any]] = {}

    def begin(self) -> None:
        """Read the CPU that the services' threads have used so far."""
        self._before = self._scene.residents.counts(self._scene.treatment)

    def observe(self, load: Load) -> Observation:
        """Return columns, reasons and warnings; nothing where no user noted anything."""
        counts = self._counts()
        result = load.result
        found = observed(result.messages, load.samples, load.services, counts, result.looks)
        beside = beside_loop_shares(self._before, counts) if found.columns else {}
        return replace(found, columns={**found.columns, **beside})

    def _counts(self) -> dict[str, dict[str, Any]]:
        """Return what the services counted, after a while for what waits to be stored."""
        deadline = time.monotonic() + STORED_WITHIN_S
        while True:
            counts = self._scene.residents.counts(self._scene.treatment)
            if not any(map(unstored, counts.values())) or time.monotonic() > deadline:
                return counts
            time.sleep(0.05)


def beside_loop_shares(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """Return what threads other than the event loop's used of a core, by service.

    From what a service counts of itself (``cpu_s``, ``loop_cpu_s``), over the whole trial. A second
    core can run no more of it than that, wherever the trial ran.
    """
    found = {}
    for name, now in after.items():
        then = before.get(name, {})
        if {"cpu_s", "loop_cpu_s", "monotonic_ns"} <= set(then) & set(now):
            process_s, loop_s = (float(now[key] - then[key]) for key in ("cpu_s", "loop_cpu_s"))
            length_s = (now["monotonic_ns"] - then["monotonic_ns"]) / 1e9
            found[f"beside_loop_cpu_share_{name}"] = (process_s - loop_s) / length_s
    return found


def observed(
    messages: pd.DataFrame,
    samples: pd.DataFrame,
    services: Sequence[str],
    counts: Mapping[str, Mapping[str, Any]],
    looks: Sequence[Looks] = (),
) -> Observation:
    """Return what the streams of a load show.

    Parameters
    ----------
    counts
        The servers' own, by node.
    looks
        At each worker's event loop: what of a latency may be the client's own.
    """
    if messages.empty:
        return Observation()
    table = message_table(messages)
    numbers = latencies(table, looks)
    columns = {**stream_columns(table, samples, services), **_latency_columns(numbers)}
    found = judged(table, counts, columns.get("plateau_cpu_share_client", math.nan))
    if not columns["plateau_s"]:
        found.warn("no_plateau", "there was no plateau: users left before all of them acted")
    warnings = (*found.warnings, *of_client_time(numbers))
    return Observation({**columns, **found.row}, {}, tuple(found.reasons), warnings)


def phases(table: pd.DataFrame) -> Phases:
    """Return the phases of a crowd, from what its users did."""
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
    """Return a trial's columns about its streams, but for latencies.

    The time in which all users act is the plateau: ``messages_per_s`` counts what came in it. CPU
    shares: 1.0 is one core.
    """
    when = phases(table)
    delivered = table[table["kind"] == "delivery"]
    came = when.on_plateau(delivered["at_ns"])
    row: dict[str, Any] = {
        "joined_ns": when.joined_ns,
        "plateau_begin_ns": when.plateau_begin_ns,
        "plateau_end_ns": when.plateau_end_ns,
        "plateau_s": when.plateau_s,
        "messages_sent": int((table["kind"] == "send").sum()),
        "messages_delivered": len(delivered),
        "messages_per_s": came.sum() / when.plateau_s if when.plateau_s else math.nan,
    }
    for name in services:
        own = samples[samples["service"] == name]
        row[f"plateau_cpu_share_{name}"] = cpu_share(
            own, when.plateau_begin_ns, when.plateau_end_ns
        )
        row[f"join_cpu_share_{name}"] = cpu_share(own, when.begin_ns, when.joined_ns)
    return row | _costs(row) | wire_columns(table, row["messages_per_s"])


def wire_columns(table: pd.DataFrame, messages_per_s: float) -> dict[str, float]:
    """Return what messages were as bytes on the wire, over the users who left in order.

    ``wire_bytes_per_message`` counts frames with their heads, as they came, over the messages in
    them; ``wire_share`` is that over the bytes of the same messages when unpacked;
    ``wire_mbit_per_s`` what a link had to carry on the plateau, without the heads of TCP and IP
    (40 bytes or more for every packet). NaN where nobody told.
    """
    told = table[table["kind"] == WIRE]
    heard = (table["direction"] == "received") & (table["bytes"] > 0) & (table["kind"] != WIRE)
    messages = table[heard & table["user"].isin(told["user"])]["bytes"]
    if not len(messages):
        return dict.fromkeys(("wire_bytes_per_message", "wire_share", "wire_mbit_per_s"), math.nan)
    each = float(told["bytes"].sum()) / len(messages)
    return {
        "wire_bytes_per_message": each,
        "wire_share": float(told["bytes"].sum()) / float(messages.sum()),
        "wire_mbit_per_s": each * messages_per_s * 8 / 1e6,
    }


def latencies(table: pd.DataFrame, looks: Sequence[Looks]) -> dict[str, Number]:
    """Return the percentiles of every latency (``delivery p50``...) and the mean of deliveries.

    From the planned instant of the sending to the receiver's read. ``plateau`` is of deliveries
    planned while all users act, whenever they came (behind a growing queue the slowest come late);
    ``join`` of those planned while users still joined (none where they had joined before the first
    message); ``delivery`` of all.
    """
    when, sending = phases(table), Sending.of(table, looks)
    delivered = table[table["kind"] == "delivery"]
    chosen = {
        "delivery": delivered,
        "plateau": delivered[when.on_plateau(delivered["planned_ns"])],
        "join": delivered[delivered["planned_ns"] <= when.joined_ns],
        "all_ping": table[table["kind"] == "pong"],
    }
    found = {name: sending.times(rows).numbers(OF_TRIALS) for name, rows in chosen.items()}
    percentiles = {
        f"{name} p{share}": numbers[f"p{share}"]
        for name, numbers in found.items()
        for share in OF_TRIALS
    }
    return {"delivery mean": found["delivery"]["mean"], **percentiles}


def _latency_columns(numbers: Mapping[str, Number]) -> dict[str, float]:
    """Return each latency where it can be compared, and what of it may be the client's own."""
    names = {name: name.replace(" ", "_") for name in numbers}
    return {
        **{f"{names[each]}_ms": number.comparable for each, number in numbers.items()},
        **{f"{names[each]}_client_ms": number.client_ms for each, number in numbers.items()},
    }


def _costs(row: Mapping[str, Any]) -> dict[str, float]:
    """Return CPU per delivered message on the plateau, of all services, in us."""
    rate = row["messages_per_s"]
    shares = [
        share
        for name, share in row.items()
        if name.startswith("plateau_cpu_share_") and not name.endswith(("_client", "_lab"))
    ]
    return {"cpu_us_per_message": sum(shares) / rate * 1e6 if rate > 0 else math.nan}
