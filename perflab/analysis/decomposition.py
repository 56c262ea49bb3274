"""Where the time of a request goes: parts of the response time that add up to it.

==================  ======================================================================
part                what it is
==================  ======================================================================
generator lag       started - planned: the generator's own fault
connection wait     sent - started: waiting for, or making, a connection
queue and other     service time - app: accept queue, network, and the server outside of
                    the application (no ASGI application can see those)
<phase>             what the service reports in Server-Timing
unaccounted app     app - the sum of the other phases
==================  ======================================================================

Without a reported ``app`` all of the service time beyond the phases is "queue and other".
"""

from __future__ import annotations

import math

import pandas as pd

from perflab.recordings.schema import PHASE_COLUMN

WHOLE = "app"
COLUMNS = ["treatment", "part", "mean_ms", "median_ms", "share", "trials", "requests"]
OWN_PARTS = ("generator lag", "connection wait", "queue and other", "unaccounted app")
TOLERANCE = 1e-3


def decompose(requests: pd.DataFrame) -> pd.DataFrame:
    """Return mean and median time of every part, per treatment.

    Parameters
    ----------
    requests : DataFrame
        From :meth:`perflab.recordings.Run.requests`; only successes count.

    Returns
    -------
    DataFrame
        Tidy: treatment, part, mean_ms (mean over trials of the trials' means; the parts of a
        treatment add up to its mean response time), median_ms (median over trials of the trials'
        medians; these do not add up), share (of the mean response time), trials, requests. A
        phase that a treatment never reports has no row.
    """
    good = requests[(requests["error"] == "") & (requests["sent_ns"] > 0)]
    rows = []
    for treatment, own in good.groupby("treatment", sort=False):
        parts = split(own)
        by_trial = parts.groupby(own["trial_id"])
        means, medians = by_trial.mean().mean(), by_trial.median().median()
        whole = float(means.sum())
        rows += [
            {
                "treatment": treatment,
                "part": part,
                "mean_ms": float(means[part]),
                "median_ms": float(medians[part]),
                "share": float(means[part]) / whole if whole > 0 else math.nan,
                "trials": by_trial.ngroups,
                "requests": len(own),
            }
            for part in parts.columns
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def split(requests: pd.DataFrame) -> pd.DataFrame:
    """Return the parts of each request in ms; a row adds up to its response time exactly."""
    service_ms = (requests["done_ns"] - requests["sent_ns"]) / 1e6
    reported = {
        match.group(1): requests[name].astype(float)
        for name in requests.columns
        if (match := PHASE_COLUMN.fullmatch(name)) and requests[name].notna().any()
    }
    app = reported.pop(WHOLE, None)
    phases = pd.DataFrame(reported, index=requests.index).fillna(0.0)
    inside = phases.sum(axis=1)
    # Where a request did not report the whole, the phases are all that is known to be inside.
    within = inside if app is None else app.fillna(inside)
    parts = {
        "generator lag": (requests["started_ns"] - requests["planned_ns"]) / 1e6,
        "connection wait": (requests["sent_ns"] - requests["started_ns"]) / 1e6,
        "queue and other": service_ms - within,
        **{str(name): phases[name] for name in phases.columns},
    }
    if app is not None:
        parts["unaccounted app"] = within - inside
    return pd.DataFrame(parts)


def sum_check(requests: pd.DataFrame, table: pd.DataFrame) -> dict[str, str]:
    """Return, per treatment whose parts cannot be right, what is wrong with them.

    The parts must add up to the mean response time, and none may be clearly negative (phases
    that overlap, or clocks that disagree).
    """
    good = requests[(requests["error"] == "") & (requests["sent_ns"] > 0)]
    response_ms = (good["done_ns"] - good["planned_ns"]) / 1e6
    problems = {}
    for treatment, parts in table.groupby("treatment", sort=False):
        own = good["treatment"] == treatment
        expected = float(response_ms[own].groupby(good["trial_id"][own]).mean().mean())
        total = float(parts["mean_ms"].sum())
        negative = parts.loc[parts["mean_ms"] < -0.01 * expected, "part"]
        if not math.isclose(total, expected, rel_tol=TOLERANCE):
            problems[str(treatment)] = f"parts add up to {total:.3g} of {expected:.3g} ms"
        elif len(negative):
            problems[str(treatment)] = f"negative time in {', '.join(negative)}: phases overlap"
    return problems


def largest_phase(table: pd.DataFrame, treatment: str, label: str = "") -> str:
    """Return a sentence that names the part with the most time in a treatment."""
    parts = table[(table["treatment"] == treatment) & table["mean_ms"].notna()]
    name = label or treatment
    if parts.empty or not (parts["mean_ms"] > 0).any():
        return f"{name}: no successful request says where its time went."
    top = parts.iloc[int(parts["mean_ms"].to_numpy().argmax())]
    return (
        f"{name}: most of the time goes to {top['part']}, {top['mean_ms']:.3g} ms of "
        f"{parts['mean_ms'].sum():.3g} ms on average ({top['share']:.0%}; "
        f"{top['trials']} trials, {top['requests']} requests)."
    )
