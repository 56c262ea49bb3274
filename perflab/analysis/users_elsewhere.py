"""The requests in flight, and where the other users are.

By Little's law (J. D. C. Little, Operations Research 9(3), 1961) the mean number of requests at the
server is the rate of answers times the mean time that a request spends there. If the rate is far
below what the users could ask for, and few of them wait for the server, something else delays them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perflab.recordings import Run, RunRecord

SERVER = "waiting for the server"
CONNECTION = "waiting for a connection"
CLIENT = "due, and not yet taken up by the client"
ELSEWHERE = "elsewhere (thinking, or keeping a pace)"
LAW = "answers per second x mean time at the server"
# The instants of a request at which a state begins and ends.
STATES = {
    SERVER: ("sent_ns", "done_ns"),
    CONNECTION: ("started_ns", "sent_ns"),
    CLIENT: ("planned_ns", "started_ns"),
}
ELSEWHERE_COLUMNS = ["treatment", "state", "t_s", "median", "low", "high", "trials"]
WINDOWS = 60
# Rounding leaves 1e-15 users, or -0.0, where there are none.
DIGITS = 6


def in_flight_varies(run: Run) -> bool:
    """Return whether trials measure requests during their whole time, not always as many at once.

    A fixed number of users who never wait have as many requests in flight as there are users.
    """
    record = run.record
    if record.shares_time or record.steady.kind or "throughput_rps" not in run.trials():
        return False
    return not all(_always_ask(record, treatment.name) for treatment in record.treatments)


def _always_ask(record: RunRecord, treatment: str) -> bool:
    arrivals = _arrivals(record, treatment)
    waits = arrivals.get("think_time_s", 0.0) or arrivals.get("pacing_s", 0.0)
    return not waits and math.isfinite(fixed_users(record, treatment))


def in_flight(run: Run) -> pd.DataFrame:
    """Return how many requests are in each state, over the measured stage of valid trials.

    Columns: treatment, state, t_s (middle of a window, from the begin of the stage), the median
    over trials of the mean in that window, the smallest and the largest mean (low, high), trials.
    ``ELSEWHERE`` are the other users of a closed loop, if their number is fixed. ``LAW`` is of the
    whole stage, so its t_s is NaN. The windows of a treatment end with its shortest trial.
    """
    rows: list[tuple[object, ...]] = []
    for treatment, trials in run.valid_trials().groupby("treatment", sort=False):
        rows += _of_treatment(run, str(treatment), trials[trials["end_ns"] > trials["begin_ns"]])
    return pd.DataFrame(rows, columns=ELSEWHERE_COLUMNS)


def fixed_users(record: RunRecord, treatment: str) -> float:
    """Return the fixed number of users of a treatment; NaN if it varies, or is unknown."""
    arrivals = _arrivals(record, treatment)
    ramps_in_warmup = arrivals.get("ramp_s", 0.0) <= arrivals.get("warmup_s", 0.0)
    is_fixed = arrivals.get("kind") == "closed" and ramps_in_warmup
    return float(arrivals["users"]) if is_fixed else math.nan


def _arrivals(record: RunRecord, treatment: str) -> dict[str, Any]:
    return dict(record.whole(treatment).get("workload", {}).get("arrivals", {}))


def _of_treatment(run: Run, treatment: str, trials: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    if trials.empty:
        return
    length_ns = int((trials["end_ns"] - trials["begin_ns"]).min())
    edges_ns = np.linspace(0, length_ns, WINDOWS + 1)
    users = fixed_users(run.record, treatment)
    counts: dict[str, list[np.ndarray]] = {}
    law = []
    for trial in trials.to_dict("records"):
        requests = run.requests(None, [str(trial["trial_id"])])
        means = counts_between(requests, int(trial["begin_ns"]) + edges_ns, users)
        for state, values in means.items():
            counts.setdefault(state, []).append(values)
        law.append(law_of(requests, int(trial["begin_ns"]), int(trial["end_ns"])))
    middles_s = (edges_ns[1:] + edges_ns[:-1]) / 2e9
    for state, of_trials in counts.items():
        for t_s, values in zip(middles_s, np.transpose(of_trials), strict=True):
            yield _row(treatment, state, float(t_s), values)
    yield _row(treatment, LAW, math.nan, np.array(law))


def _row(treatment: str, state: str, t_s: float, values: np.ndarray) -> tuple[object, ...]:
    spread = (float(np.median(values)), float(values.min()), float(values.max()))
    return treatment, state, t_s, *spread, len(values)


def counts_between(
    requests: pd.DataFrame, edges_ns: np.ndarray, users: float = math.nan
) -> Mapping[str, np.ndarray]:
    """Return, by state, the mean number of requests in it in every window between edges.

    A request that never reached an instant stays in the state before it to the end. ``ELSEWHERE``
    is included if the number of users is known.
    """
    end_ns = float(edges_ns[-1])
    columns = requests[["planned_ns", "started_ns", "sent_ns", "done_ns"]].astype(float)
    instants = {str(name): np.where(ns > 0, ns, end_ns) for name, ns in columns.items()}
    # A request that failed before it was sent ends where it failed.
    for name in ("started_ns", "sent_ns"):
        instants[name] = np.minimum(instants[name], instants["done_ns"])
    counts = {
        state: _mean_between(instants[begin], instants[end], edges_ns)
        for state, (begin, end) in STATES.items()
    }
    if math.isfinite(users):
        others = users - sum(counts.values(), np.zeros(len(edges_ns) - 1))
        counts[ELSEWHERE] = np.round(others, DIGITS) + 0.0
    return counts


def law_of(requests: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return answers per second times mean service time, for requests done in (begin, end]."""
    sent, done = requests["sent_ns"].to_numpy(float), requests["done_ns"].to_numpy(float)
    is_counted = (done > begin_ns) & (done <= end_ns) & (sent > 0)
    return float((done - sent)[is_counted].sum() / (end_ns - begin_ns))


def _mean_between(begins: np.ndarray, ends: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return how many spans [begin, end) are open, on average over each window."""
    spent = np.diff(_time_since(begins, edges) - _time_since(ends, edges))
    mean: np.ndarray = spent / np.diff(edges)
    return mean


def _time_since(instants: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return for each edge the sum of its distances from all instants before it."""
    # Instants from the first edge: sums of instants since boot would lose nanoseconds.
    ordered = np.sort(instants - edges[0])
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    passed = np.searchsorted(ordered, edges - edges[0])
    time: np.ndarray = passed * (edges - edges[0]) - sums[passed]
    return time
