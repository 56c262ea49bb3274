"""What is told of a run while it goes on: live numbers of the load, and the time that is left.

None of it is a result. The lab's own numbers are made after the load, from every request, and only
then is the load judged.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perflab.load.stopping import Progress, percentile_ms
from perflab.percentiles import needed_n
from perflab.trials.events import LoadProgress

SHOWN = (50.0, 95.0, 99.0)


class LiveNumbers:
    """Adds up what the workers tell of one trial; it runs where their reports are read.

    Parameters
    ----------
    planned : int
        How many requests the load has; -1 where time ends it.
    """

    def __init__(self, planned: int) -> None:
        self._planned = planned
        self._times: Counter[int] = Counter()
        self._warming_up = True

    def event(self, so_far: Progress, cores: Mapping[str, float], seconds: float) -> LoadProgress:
        """Take the newest sums, with the response times since the ones before."""
        if not self._warming_up or so_far.measured == so_far.finished:
            self._times += so_far.counts
        # The report in which the warm-up ends has times of both, which cannot be told apart.
        self._warming_up = not so_far.measured
        return LoadProgress(
            finished=so_far.finished,
            of=self._planned,
            seconds=seconds,
            failed=so_far.failed,
            warming_up=self._warming_up and so_far.finished > 0,
            percentiles_ms=self._percentiles(),
            cores={name: round(used, 3) for name, used in cores.items()},
        )

    def _percentiles(self) -> dict[str, float]:
        n = self._times.total()
        return {
            f"p{share:g}": round(percentile_ms(self._times, share), 3)
            for share in SHOWN
            if n >= needed_n(share)
        }


@dataclass
class TimeLeft:
    """What trials, stops and starts took, in seconds, for an estimate of those to come.

    A trial is everything from its activation to its commit: warm-up, load, probes, cool-down and
    writing. Treatments may differ by far, so each is estimated from its own trials where there are
    some, else from the mean of all.
    """

    trials_s: dict[str, list[float]] = field(default_factory=dict)
    starts_s: list[float] = field(default_factory=list)
    stops_s: list[float] = field(default_factory=list)

    def took(self, treatment: str, seconds: float) -> None:
        """Note a trial that is committed."""
        self.trials_s.setdefault(treatment, []).append(seconds)

    def estimate_s(self, trials: Iterable[str], restarts: int) -> float | None:
        """Return seconds until the services of the run are down; None before the first trial.

        Parameters
        ----------
        trials : iterable of str
            The treatments of the trials to come, in any order.
        restarts : int
            How often the services will be started afresh between them.
        """
        if not self.trials_s:
            return None
        overall = statistics.fmean(s for spent in self.trials_s.values() for s in spent)
        load_s = sum(
            statistics.fmean(self.trials_s[name]) if name in self.trials_s else overall
            for name in trials
        )
        stop_s = statistics.fmean(self.stops_s) if self.stops_s else 0.0
        start_s = statistics.fmean(self.starts_s) if self.starts_s else 0.0
        return load_s + restarts * (stop_s + start_s) + stop_s
