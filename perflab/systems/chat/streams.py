"""The responses of a trial's streams: deliveries, pings, phases, and lost messages."""

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
    """The phases of a crowd: instants in ns, 0 if there was none.

    Users join from ``begin_ns`` to ``joined_ns``; all of them act from ``plateau_begin_ns`` (the
    last user's first action) to ``plateau_end_ns`` (the first user's last action).
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
        is_on_plateau: np.ndarray = (inside & (self.plateau_s > 0)).to_numpy(bool)
        return is_on_plateau


class Streams(Instrument):
    """Sums up a crowd's streams in columns, and judges lost messages."""

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
        """Return columns, reasons and warnings; nothing if no user recorded anything."""
        counts = self._counts()
        result = load.result
        observation = observed(result.messages, load.samples, load.services, counts, result.looks)
        loop_columns = beside_loop_shares(self._before, counts) if observation.columns else {}
        return replace(observation, columns={**observation.columns, **loop_columns})

    def _counts(self) -> dict[str, dict[str, Any]]:
        """Return the services' counts, once all messages are stored or the wait is over."""
        deadline = time.monotonic() + STORED_WITHIN_S
        while True:
            counts = self._scene.residents.counts(self._scene.treatment)
            if not any(map(unstored, counts.values())) or time.monotonic() > deadline:
                return counts
            time.sleep(0.05)


def beside_loop_shares(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """Return the CPU share of threads other than the event loop's, by service.

    The shares come from a service's own counts (``cpu_s``, ``loop_cpu_s``) over the whole trial. A
    second core cannot run more of the service than that, on any machine.
    """
    share_of = {}
    for name, end in after.items():
        start = before.get(name, {})
        if {"cpu_s", "loop_cpu_s", "monotonic_ns"} <= set(start) & set(end):
            process_s, loop_s = (float(end[key] - start[key]) for key in ("cpu_s", "loop_cpu_s"))
            length_s = (end["monotonic_ns"] - start["monotonic_ns"]) / 1e9
            share_of[f"beside_loop_cpu_share_{name}"] = (process_s - loop_s) / length_s
    return share_of


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
        The servers' own counts, by node.
    looks
        The looks at each worker's event loop; they show the client's part of a latency.
    """
    if messages.empty:
        return Observation()
    table = message_table(messages)
    numbers = latencies(table, looks)
    columns = {**stream_columns(table, samples, services), **_latency_columns(numbers)}
    judgement = judged(table, counts, columns.get("plateau_cpu_share_client", math.nan))
    if not columns["plateau_s"]:
        judgement.warn("no_plateau", "there was no plateau: users left before all of them acted")
    warnings = (*judgement.warnings, *of_client_time(numbers))
    return Observation({**columns, **judgement.row}, {}, tuple(judgement.reasons), warnings)


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
    """Return a trial's columns about its streams, without latencies.

    ``messages_per_s`` counts deliveries on the plateau, in which all users act. CPU shares: 1.0 is
    one core.
    """
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
    return row | _costs(row) | wire_columns(table, row["messages_per_s"])


def wire_columns(table: pd.DataFrame, messages_per_s: float) -> dict[str, float]:
    """Return the bytes of messages on the wire, from the users who left in order.

    ``wire_bytes_per_message`` is the bytes of received frames with their heads over the number of
    messages in them; ``wire_share`` is those bytes over the bytes of the unpacked messages;
    ``wire_mbit_per_s`` is the load of a link on the plateau, without the heads of TCP and IP
    (40 bytes or more for every packet). All are NaN if no user left in order.
    """
    totals = table[table["kind"] == WIRE]
    received = (table["direction"] == "received") & (table["bytes"] > 0) & (table["kind"] != WIRE)
    messages = table[received & table["user"].isin(totals["user"])]["bytes"]
    if not len(messages):
        return dict.fromkeys(("wire_bytes_per_message", "wire_share", "wire_mbit_per_s"), math.nan)
    bytes_per_message = float(totals["bytes"].sum()) / len(messages)
    return {
        "wire_bytes_per_message": bytes_per_message,
        "wire_share": float(totals["bytes"].sum()) / float(messages.sum()),
        "wire_mbit_per_s": bytes_per_message * messages_per_s * 8 / 1e6,
    }


def latencies(table: pd.DataFrame, looks: Sequence[Looks]) -> dict[str, Number]:
    """Return the percentiles of every latency (``delivery p50``...) and the mean of deliveries.

    A latency lasts from the planned instant of sending to the receiver's read. ``plateau`` is of
    deliveries planned while all users act, whenever they came (behind a growing queue the slowest
    come late); ``join`` of those planned while users still joined (none if all joined before the
    first message); ``delivery`` of all.
    """
    crowd, sending = phases(table), Sending.of(table, looks)
    delivered = table[table["kind"] == "delivery"]
    rows_of = {
        "delivery": delivered,
        "plateau": delivered[crowd.on_plateau(delivered["planned_ns"])],
        "join": delivered[delivered["planned_ns"] <= crowd.joined_ns],
        "all_ping": table[table["kind"] == "pong"],
    }
    numbers_of = {name: sending.times(rows).numbers(OF_TRIALS) for name, rows in rows_of.items()}
    percentiles = {
        f"{name} p{share}": numbers[f"p{share}"]
        for name, numbers in numbers_of.items()
        for share in OF_TRIALS
    }
    return {"delivery mean": numbers_of["delivery"]["mean"], **percentiles}


def _latency_columns(numbers: Mapping[str, Number]) -> dict[str, float]:
    """Return each comparable latency, and how much of it may be the client's own."""
    names = {name: name.replace(" ", "_") for name in numbers}
    return {
        **{f"{names[name]}_ms": number.comparable for name, number in numbers.items()},
        **{f"{names[name]}_client_ms": number.client_ms for name, number in numbers.items()},
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
