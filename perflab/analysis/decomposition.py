"""Where the time goes: response time split into what the client and the service saw."""

from __future__ import annotations

import pandas as pd

INNER = ("threadpool", "inference", "pool", "execute", "commit")


def parts_of(requests: pd.DataFrame) -> pd.DataFrame:
    """Return each successful request's response time split into parts, in ms.

    ``generator lag`` + ``connect and wait`` (started to sent) + ``queue and transport`` (service
    time outside the application: accept queue, sockets, both event loops) + the phases the service
    reports + ``other in app`` = response time.
    """
    good = requests[(requests["error"] == "") & (requests["sent_ns"] > 0)]
    parts = pd.DataFrame(index=good.index)
    parts["generator lag"] = (good["started_ns"] - good["planned_ns"]) / 1e6
    parts["connect and wait"] = (good["sent_ns"] - good["started_ns"]) / 1e6
    service_ms = (good["done_ns"] - good["sent_ns"]) / 1e6
    app_ms = _phase(good, "app")
    parts["queue and transport"] = service_ms - app_ms
    inner = [name for name in INNER if f"phase_{name}_ms" in good]
    for name in inner:
        parts[name] = _phase(good, name)
    parts["other in app"] = app_ms - parts[inner].sum(axis=1)
    return parts


def _phase(requests: pd.DataFrame, name: str) -> pd.Series:
    column = f"phase_{name}_ms"
    if column not in requests:
        return pd.Series(0.0, index=requests.index)
    return requests[column].astype(float).fillna(0.0)


def time_parts(requests: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and median of every part per treatment: treatment, part, mean_ms, median_ms.

    The mean is the mean of the trials' means (the trial is the unit); means add up to the mean
    response time, medians need not.
    """
    columns = ["treatment", "part", "mean_ms", "median_ms"]
    if requests.empty:
        return pd.DataFrame(columns=columns)
    parts = parts_of(requests)
    keyed = parts.assign(
        treatment=requests.loc[parts.index, "treatment"],
        trial_id=requests.loc[parts.index, "trial_id"],
    )
    trials = keyed.groupby(["treatment", "trial_id"], sort=False)
    means = trials.mean().groupby("treatment", sort=False).mean()
    medians = trials.median().groupby("treatment", sort=False).median()
    tidy = means.stack().rename("mean_ms").to_frame()
    tidy["median_ms"] = medians.stack()
    return tidy.rename_axis(["treatment", "part"]).reset_index()[columns]


def bottleneck(parts: pd.DataFrame, treatment: str) -> str:
    """Return a sentence naming the largest part of a treatment's mean response time."""
    own = parts[parts["treatment"] == treatment]
    if own.empty or own["mean_ms"].sum() <= 0:
        return f"{treatment}: no successful request to take apart."
    largest = own.loc[own["mean_ms"].idxmax()]
    share = largest["mean_ms"] / own["mean_ms"].sum()
    return (
        f"{treatment}: most time goes into {largest['part']}, {largest['mean_ms']:.1f} ms "
        f"({share:.0%} of the mean response time)."
    )
