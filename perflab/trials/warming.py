"""Find how long services must be under load until they are warm.

A runtime that compiles as it runs (Java, Node, Go's garbage collector as its heap grows) answers
ever faster for seconds. The load of each treatment is sent to its freshly started services in short
windows, one after the other, until neither the mean response time nor the CPU time of a request
falls any more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from perflab.analysis.doubts.still_warming import UNFINISHED
from perflab.host.meters import ProcessTable
from perflab.load.records.result import LoadResult
from perflab.recordings import Remark
from perflab.stacks.backend import used_by
from perflab.trials.plan import RunPlan, Treatment, timed
from perflab.trials.trial import Bench, send_beside

# A service that needs none is warmed up for the least time, and nobody waits longer than the most.
LEAST_S, MOST_S = 1.0, 20.0
# The code of the remark on a longer warm-up.
FOUND = "warmup.found"
# A window is counted once its users' connections are open.
WINDOW_S, SETTLE_S = 0.4, 0.1
STEP_S = WINDOW_S + SETTLE_S
LEAST, MOST = round(LEAST_S / STEP_S), round(MOST_S / STEP_S)
# So many windows at least tell that nothing falls.
FLAT = 4
# What is a fall: more than this share, and more than so many standard deviations of a window.
FALL, DEVIATIONS = 0.03, 2.0
# A number that falls in every window, and by more than this share in all, falls on.
STEADY = 0.01
# Where noise would hide a larger fall, more windows must tell, up to so many.
VAGUE, ENOUGH = 0.10, 12


@dataclass
class Course:
    """The means of a treatment's windows: response time in ms, and CPU time of a request in us."""

    response_ms: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)

    def windows(self) -> int | None:
        """Return how many windows belong to the warm-up; None while more must tell."""
        ends = [warm_after(values) for values in (self.response_ms, self.cpu_us) if known(values)]
        whole = [end for end in ends if end is not None]
        return max(whole, default=LEAST) if len(whole) == len(ends) else None

    def still_falls(self) -> float:
        """Return by what share a number fell in the later half of the windows; 0 if none did."""
        return max(
            (latest_fall(values) for values in (self.response_ms, self.cpu_us) if known(values)),
            default=0.0,
        )


def known(values: Sequence[float]) -> bool:
    """Return whether all values have a logarithm."""
    return all(math.isfinite(value) and value > 0 for value in values)


def _least_fall(logs: np.ndarray) -> float:
    """Return what is a fall of a window, on the scale of logarithms."""
    return max(math.log1p(FALL), DEVIATIONS * _noise(logs))


def _noise(logs: np.ndarray) -> float:
    """Return the standard deviation of a window, without what falls steadily.

    It is that of second differences, by their median, which few steps do not move.
    """
    differences = np.abs(np.diff(logs, 2))
    return 1.4826 * float(np.median(differences)) / math.sqrt(6) if len(differences) else 0.0


def warm_after(values: Sequence[float]) -> int | None:
    """Return after how many windows a number no longer falls; None if that is not known yet.

    A window is cold if the median of it and its neighbours lies above that of the later half. The
    windows after the last cold one must be flat, and as many as those before, because compilers
    work in stages. A fall in each of them is none that noise makes.
    """
    logs, count = np.log(values), len(values)
    if count < LEAST + FLAT:
        return None
    fall = _least_fall(logs)
    level = float(np.median(logs[count // 2 :]))
    cold = [
        at
        for at in range(LEAST, count)
        if float(np.median(logs[max(0, at - 1) : at + 2])) > level + fall
    ]
    warm = cold[-1] + 1 if cold else LEAST
    flat = logs[warm:]
    if len(flat) < max(FLAT, warm):
        return None
    # Medians of halves are the surer, the more windows they are of.
    unsure = DEVIATIONS * _noise(logs) * 1.2533 * math.sqrt(2 / (len(flat) // 2))
    if unsure > math.log1p(VAGUE) and count < ENOUGH:
        return None
    if flat[0] - flat[-1] > math.log1p(STEADY) and (np.diff(flat) < 0).all():
        return None
    return warm if _fallen(flat) <= min(fall, max(math.log1p(FALL), unsure)) else None


def latest_fall(values: Sequence[float]) -> float:
    """Return by what share a number fell in the later half of its windows; 0 if it did not."""
    logs = np.log(values)
    fallen = _fallen(logs[len(logs) // 2 :])
    return -math.expm1(-fallen) if fallen > _least_fall(logs) else 0.0


def _fallen(logs: np.ndarray) -> float:
    half = len(logs) // 2
    return float(np.median(logs[:half]) - np.median(logs[half:])) if half else 0.0


@dataclass(frozen=True)
class WarmUp:
    """The warm-up of all treatments, the last window's load of each, and what is to be told."""

    seconds: float
    loads: dict[str, LoadResult]
    remarks: tuple[Remark, ...]


def find(bench: Bench, plan: RunPlan) -> WarmUp:
    """Send each treatment's load in windows until it is warm; return the longest warm-up."""
    longest, loads, remarks = LEAST, {}, []
    for treatment in plan.treatments:
        bench.residents.activate(treatment.name)
        course, result = _sent(bench, treatment)
        loads[treatment.name] = result
        fall = course.still_falls() if course.windows() is None else 0.0
        # What noise alone keeps from being flat is no reason to wait.
        longest = max(longest, course.windows() or (MOST if fall else LEAST))
        if fall:
            text = (
                f"{treatment.short} was still warming up after {MOST_S:g} s of load: in the second "
                f"half of them its response time or its CPU time of a request fell by {fall:.0%}"
            )
            remarks.append(Remark(code=UNFINISHED, text=text))
    seconds = longest * STEP_S
    if seconds > LEAST_S:
        text = f"warm-up: {seconds:g} s, found by the lab: the same for all"
        remarks.insert(0, Remark(code=FOUND, text=text))
    return WarmUp(seconds, loads, tuple(remarks))


def _sent(bench: Bench, treatment: Treatment) -> tuple[Course, LoadResult]:
    """Send windows until a treatment is warm, or for the most time; return the last one's load."""
    course, began = Course(), time.monotonic()
    services = bench.residents.active(treatment.name).values()
    load, result = timed(treatment.workload, SETTLE_S, WINDOW_S), None
    while result is None or (
        known(course.response_ms)
        and course.windows() is None
        and len(course.response_ms) < MOST
        # Where responses take long, so do windows.
        and time.monotonic() - began < MOST_S + LEAST_S
    ):
        if result is not None:
            result.discard()
        before_ns = used_by(services, ProcessTable()).cpu_ns
        result = send_beside(bench, treatment, load)
        course.response_ms.append(mean_ms(result))
        cpu_ns = used_by(services, ProcessTable()).cpu_ns - before_ns
        count = sum(int((rows["error"] == 0).sum()) for rows in result.rows)
        course.cpu_us.append(cpu_ns / 1e3 / count if count else math.nan)
    return course, result


def mean_ms(result: LoadResult) -> float:
    """Return the mean response time of a load's measured successes; NaN without any."""
    times_ns = result.measured(
        lambda rows: (rows["done_ns"] - rows["planned_ns"])[rows["error"] == 0]
    )
    return float(times_ns.mean()) / 1e6 if len(times_ns) else math.nan
