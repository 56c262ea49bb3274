"""How long the rest of a run will take, from what its parts took so far."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field


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
