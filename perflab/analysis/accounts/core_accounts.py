"""What a request costs the cores: the time that services' threads ran, or waited for a core.

The times come from the kernel's accounts of each service (:mod:`perflab.instruments.kernel`),
divided by the answers of the trial. They are accounts of threads, not parts of the response time:

- *on a core* is exact: all CPU time of a service, whatever it was for;
- *waiting for a core* is the sum over threads that were ready to run. A wait of an event loop
  counts once, although it delays every request in the loop, so requests may wait longer than this
  says. A wait of a thread that serves no request, or of one of several threads that serve the same
  request, delays none, so requests may wait less. Threads that end between two looks are missing.

By the utilisation law (P. J. Denning, J. P. Buzen, ACM Computing Surveys 10, 1978) throughput x
time on a core = cores busy. So if the cores were always busy, time on a core is nearly all the time
that they had for a request.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from perflab.recordings import Run, RunRecord
from perflab.statistics.in_words import number
from perflab.statistics.quantiles import t_interval

ON_CORE, WAITING = "on a core", "waiting for a core"
ALL_SERVICES = "all services"
AVAILABLE = "cores there were"
ROLES = ("services", "database", "link")
CORE_COLUMNS = ["treatment", "service", "what", "mean_ms", "low_ms", "high_ms", "trials", "seen"]
# If its threads' accounts hold less of a service's CPU than this, many of its threads have ended.
WELL_SEEN = 0.9
_RUN, _WAIT, _CPU = "run_share_", "core_wait_share_", "cpu_share_"


def service_cores(record: RunRecord) -> tuple[int, ...]:
    """Return the cores that services, database and links may use; none if the record has none."""
    placed = [record.placement.get(role) or () for role in ROLES]
    return tuple(sorted({int(core) for cores in placed for core in cores}))


def has_accounts(run: Run) -> bool:
    """Return whether the trials have the scheduler's accounts, and requests to divide them by."""
    return "throughput_rps" in run.trials() and bool(waiting_services(run.trials()))


def core_time(run: Run) -> pd.DataFrame:
    """Return what an answer costs the cores, by treatment and service, over valid trials.

    Columns: treatment, service (each, and ``ALL_SERVICES``), what (``ON_CORE`` or ``WAITING``, and
    for ``ALL_SERVICES`` also ``AVAILABLE``: time between two answers x cores that services may
    use), mean_ms over trials with its 95% t interval (NaN below 2), trials, seen (for ``WAITING``:
    the share of the service's CPU that is in the accounts of its threads).
    """
    trials = run.valid_trials()
    if not has_accounts(run):
        return pd.DataFrame(columns=CORE_COLUMNS)
    cores = len(service_cores(run.record))
    rows = []
    # If every request was cut off, there is no answer to divide the cores' time by.
    answered = trials[trials["throughput_rps"].astype(float) > 0]
    for treatment, group in answered.groupby("treatment", sort=False):
        services = waiting_services(group)
        answers_per_ms = group["throughput_rps"].astype(float) / 1e3
        for what, prefix in ((ON_CORE, _CPU), (WAITING, _WAIT)):
            shares = pd.DataFrame({name: group[prefix + name].astype(float) for name in services})
            if len(services) > 1:
                shares[ALL_SERVICES] = shares.sum(axis=1, skipna=False)
            for name in shares.columns:
                seen = _seen_share(group, str(name)) if what == WAITING else math.nan
                rows.append(
                    _row(str(treatment), str(name), what, shares[name] / answers_per_ms, seen)
                )
        if cores and services:
            rows.append(_row(str(treatment), ALL_SERVICES, AVAILABLE, cores / answers_per_ms))
    return pd.DataFrame(rows, columns=CORE_COLUMNS)


def waiting_services(trials: pd.DataFrame) -> list[str]:
    """Return the services that have accounts of the kernel in these trials."""
    names = [str(name) for name in trials.columns if str(name).startswith(_WAIT)]
    return [name.removeprefix(_WAIT) for name in names if trials[name].notna().any()]


def _row(
    treatment: str, service: str, what: str, values: pd.Series[float], seen: float = math.nan
) -> tuple[object, ...]:
    x = values.dropna().to_numpy(float)
    mean = float(x.mean()) if len(x) else math.nan
    return treatment, service, what, mean, *t_interval(x), len(x), seen


def _seen_share(trials: pd.DataFrame, service: str) -> float:
    if service == ALL_SERVICES:
        return math.nan
    used = float(trials[_CPU + service].sum())
    return min(1.0, float(trials[_RUN + service].sum()) / used) if used > 0 else math.nan


@dataclass(frozen=True)
class CoreAccount:
    """The accounts of one treatment, of all services and of each; ``rows`` of :func:`core_time`."""

    rows: pd.DataFrame

    @property
    def services(self) -> Sequence[str]:
        """Return the services; the one that waited longest is first."""
        waits = self.rows[(self.rows["what"] == WAITING) & (self.rows["service"] != ALL_SERVICES)]
        return list(waits.sort_values("mean_ms", ascending=False)["service"])

    def whole(self) -> str:
        """Return the name of the row of all services: a single service has no sum."""
        return ALL_SERVICES if len(self.services) > 1 else self.services[0]

    def value(self, service: str, what: str, column: str = "mean_ms") -> float:
        """Return one number of the table; NaN if it has none."""
        rows = self.rows
        values = rows.loc[(rows["service"] == service) & (rows["what"] == what), column]
        return float(values.iloc[0]) if len(values) else math.nan

    def text(self, service: str, what: str) -> str:
        """Return a mean in ms with its interval, if it has one: ``1.20 [1.10, 1.31]``."""
        mean, low, high = (
            self.value(service, what, name) for name in ("mean_ms", "low_ms", "high_ms")
        )
        return number(mean) + (f" [{number(low)}, {number(high)}]" if math.isfinite(low) else "")

    def busy(self) -> float:
        """Return the share of their cores that the services used."""
        return self.value(self.whole(), ON_CORE) / self.value(ALL_SERVICES, AVAILABLE)

    def partly_seen(self) -> list[str]:
        """Return the services with many threads that ended unseen."""
        seen = {name: self.value(name, WAITING, "seen") for name in self.services}
        return [name for name, share in seen.items() if share < WELL_SEEN]
