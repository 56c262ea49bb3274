"""What is shown of a trial while its load runs: sums, percentiles so far, busy cores.

None of it is a result. The lab's own numbers are made after the load, from every request, and only
then is the load judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

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
