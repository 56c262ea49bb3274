"""When a driver may plan requests: the windows of its load, as it asks for them."""

from __future__ import annotations

from bisect import bisect_right

from perflab.load.windows import BEGIN, COUNTED, END, instants_of
from perflab.load.workload import ClosedLoop, OpenLoop


class Openings:
    """The windows of a load that starts at an instant.

    Attributes
    ----------
    counted : list of (int, int)
        Begin and end of the counted part of each window, in ns; of some it has no length.
    """

    def __init__(self, arrivals: ClosedLoop | OpenLoop, start_ns: int) -> None:
        windows = instants_of(arrivals, start_ns)
        self._begins: list[int] = windows[:, BEGIN].tolist()
        self._counted: list[int] = windows[:, COUNTED].tolist()
        self._ends: list[int] = windows[:, END].tolist()
        self.counted = list(zip(self._counted, self._ends, strict=True))

    def next(self, planned_ns: int, never_ns: int) -> int:
        """Return an instant if it lies in a window, else the next begin; after the last, never."""
        number = bisect_right(self._begins, planned_ns) - 1
        if number >= 0 and planned_ns < self._ends[number]:
            return planned_ns
        number += 1
        return self._begins[number] if number < len(self._begins) else never_ns

    def counts(self, planned_ns: int) -> bool:
        """Return whether an instant lies in the counted part of its window."""
        number = bisect_right(self._begins, planned_ns) - 1
        return number >= 0 and self._counted[number] <= planned_ns < self._ends[number]
