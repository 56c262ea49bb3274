"""What a trial's streams show: deliveries, pings, phases, and messages that were lost."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.instruments import Instrument, Load, Look, Observation, Scene
from perflab.percentiles import OF_TRIALS, percentile, percentiles_of
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

    def observe(self, load: Load) -> Observation:
        """Return columns, reasons and warnings; nothing where no user noted anything."""
        counts = self._counts()
        return observed(load.result.messages, load.samples, load.services, counts)

    def _counts(self) -> dict[str, dict[str, Any]]:
        """Return what the services counted, after a while for what waits to be stored."""
        deadline = time.monotonic() + STORED_WITHIN_S
        while True:
            counts = self._scene.residents.counts(self._scene.treatment)
            if not any(map(unstored, counts.values())) or time.monotonic() > deadline:
                return counts
            time.sleep(0.05)


def observed(
    messages: pd.DataFrame,
    samples: pd.DataFrame,
    services: Sequence[str],
    counts: Mapping[str, Mapping[str, Any]],
) -> Observation:
    """Return what the streams of a load show; ``counts`` are the servers' own, by node."""
    if messages.empty:
        return Observation()
    table = message_table(messages)
    columns = stream_columns(table, samples, services)
    found = judged(table, counts, columns.get("plateau_cpu_share_client", math.nan))
    if not columns["plateau_s"]:
        found.warn("no_plateau", "there was no plateau: users left before all of them acted")
    return Observation({**columns, **found.row}, {}, tuple(found.reasons), tuple(found.warnings))


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
    """Return a trial's columns about its streams.

    Delivery latency is from the planned instant of the sending to the receiver's read, over all
    deliveries of the trial. The time in which all users act is the plateau: ``plateau_p`` columns
    are of what was planned in it, whenever it came (behind a growing queue the slowest come late);
    ``messages_per_s`` counts what came in it. ``join_p`` columns are of what was planned while
    users still joined (NaN where they had joined before the first message). CPU shares: 1.0 is
    one core.
    """
    when = phases(table)
    delivered = table[table["kind"] == "delivery"]
    latency_ms = _latency_ms(delivered)
    planned, came = (when.on_plateau(delivered[name]) for name in ("planned_ns", "at_ns"))
    crowd = table[table["kind"].isin(ACTIONS)]
    row: dict[str, Any] = {
        "joined_ns": when.joined_ns,
        "plateau_begin_ns": when.plateau_begin_ns,
        "plateau_end_ns": when.plateau_end_ns,
        "plateau_s": when.plateau_s,
        "messages_sent": int((table["kind"] == "send").sum()),
        "messages_delivered": len(delivered),
        "messages_per_s": came.sum() / when.plateau_s if when.plateau_s else math.nan,
        "active_users": int(crowd["user"].nunique()),
        "most_connected": _most_connected(table),
        "delivery_mean_ms": float(latency_ms.mean()) if len(latency_ms) else math.nan,
        **_percentiles("delivery", latency_ms),
        **_percentiles("plateau", latency_ms[planned]),
        **_percentiles("join", latency_ms[delivered["planned_ns"] <= when.joined_ns]),
        **_percentiles("ping", _latency_ms(_pongs(table, delivered))),
        **_percentiles("ack", _latency_ms(table[table["kind"] == "ack"])),
        "message_lag_p99_ms": percentile(_latency_ms(crowd), 99),
    }
    for name in services:
        own = samples[samples["service"] == name]
        row[f"plateau_cpu_share_{name}"] = cpu_share(
            own, when.plateau_begin_ns, when.plateau_end_ns
        )
        row[f"join_cpu_share_{name}"] = cpu_share(own, when.begin_ns, when.joined_ns)
    return row | _costs(row)


def _pongs(table: pd.DataFrame, delivered: pd.DataFrame) -> pd.DataFrame:
    """Return the pongs of the time in which messages were delivered: the two are compared."""
    pongs = table[table["kind"] == "pong"]
    return pongs[pongs["at_ns"].between(delivered["at_ns"].min(), delivered["at_ns"].max())]


def _costs(row: Mapping[str, Any]) -> dict[str, float]:
    """Return CPU per delivered message on the plateau, of all services and of the client, in us."""
    rate = row["messages_per_s"]
    shares = {
        name.removeprefix("plateau_cpu_share_"): share
        for name, share in row.items()
        if name.startswith("plateau_cpu_share_")
    }
    client = shares.pop("client", math.nan)
    shares.pop("lab", None)
    if not (rate > 0):
        return {"cpu_us_per_message": math.nan, "client_cpu_us_per_message": math.nan}
    return {
        "cpu_us_per_message": sum(shares.values()) / rate * 1e6,
        "client_cpu_us_per_message": client / rate * 1e6,
    }


def _latency_ms(rows: pd.DataFrame) -> np.ndarray:
    return ((rows["at_ns"] - rows["planned_ns"]) / 1e6).to_numpy(float)


def _percentiles(name: str, values: np.ndarray) -> dict[str, float]:
    found = percentiles_of(values, OF_TRIALS)
    return {f"{name}_p{share}_ms": value for share, value in found.items()}


def _most_connected(table: pd.DataFrame) -> int:
    """Return the most connections there were at a time, a monitor's included."""
    steps = table["kind"].map({"connected": 1, "left": -1, "cut": -1}).fillna(0)
    order = np.argsort(table["at_ns"].to_numpy(), kind="stable")
    return int(steps.to_numpy()[order].cumsum().max(initial=0))
