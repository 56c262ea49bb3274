"""What the kernel did during the trials of a run, where anything moved.

Counters of TCP are the host's, with the traffic of other processes in it; accept queues and waits
for a core are of each service alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from perflab.recordings import Run
from perflab.recordings.columns import TCP_COUNTERS

HOST = "host"
COLUMNS = ["treatment", "whose", "what", "median", "smallest", "largest", "trials"]
# The column of a trial to what it is called; ``*`` stands for a service.
OF_HOST = {
    **TCP_COUNTERS,
}
OF_SERVICES = {
    "accept_drops_*": "connections dropped at its socket",
    "accept_queue_max_*": "longest accept queue seen",
    "core_wait_share_*": "threads waiting for a core",
}


def kernel_part(run: Run) -> pd.DataFrame:
    """Return what moved in some valid trial, by treatment: median, smallest and largest of trials.

    Columns: treatment, whose (``HOST`` or a service), what, median, smallest, largest, trials (that
    have a number). No rows where a recording has none of it, or nothing moved.
    """
    trials = run.valid_trials()
    rows = [
        _row(str(treatment), whose, what, own[column].astype(float))
        for column, whose, what in _moved(trials)
        for treatment, own in trials.groupby("treatment", sort=False)
    ]
    found = pd.DataFrame(rows, columns=COLUMNS)
    order = {item.name: place for place, item in enumerate(run.record.treatments)}
    places = found["treatment"].map(order).to_numpy(float)
    return found.iloc[np.argsort(places, kind="stable")].reset_index(drop=True)


def _moved(trials: pd.DataFrame) -> Iterator[tuple[str, str, str]]:
    """Yield column, whose and what of every number that is not 0 in all trials."""
    for column, whose, what in _known(list(map(str, trials.columns))):
        if (trials[column].astype(float).fillna(0) > 0).any():
            yield column, whose, what


def _known(columns: list[str]) -> Iterator[tuple[str, str, str]]:
    for column, what in OF_HOST.items():
        if column in columns:
            yield column, HOST, what
    for pattern, what in OF_SERVICES.items():
        form = re.compile(re.escape(pattern).replace(r"\*", "(.+)"))
        for column in columns:
            if service := form.fullmatch(column):
                yield column, service[1], what


def _row(treatment: str, whose: str, what: str, values: pd.Series[float]) -> dict[str, object]:
    x = values.dropna().to_numpy(float)
    median, smallest, largest = (
        (float(np.median(x)), float(x.min()), float(x.max())) if len(x) else (np.nan,) * 3
    )
    return {
        "treatment": treatment, "whose": whose, "what": what, "median": median,
        "smallest": smallest, "largest": largest, "trials": len(x),
    }  # fmt: skip
