"""The published claims about connections and phases, as contrasts between rungs.

Only directions are compared, no sizes: the study defines neither its success nor the load of each
phase, and it never measured the effect of keep-alive that it expects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from perflab.recordings import Contrast, ContrastPair
from perflab.recordings.contrasts import Direction
from perflab.systems.metricstream.rungs import BEFORE, LOAD_TESTS, OF_THE_LAB, THREADINGS
from perflab.trials.ladders import between, having

SUCCESS, CPU, THROUGHPUT = "success_share", "server_cpu_us_per_request", "throughput_rps"
CORES, TOLD_SUCCESS = "cpu_share_metricstream", "told_success_rate"
LOCK, PARSE, MEAN = "phase_lock_p50_ms", "phase_parse_p50_ms", "mean_ms"
WORDS = {
    SUCCESS: "success",
    CPU: "server CPU",
    THROUGHPUT: "throughput",
    LOCK: "lock",
    PARSE: "parse",
    MEAN: "mean",
    CORES: "server's cores",
    TOLD_SUCCESS: "success as told",
}
# A claim about the cost of a request is tested on both and says which.
SEEN_IN = {CPU: "the server's CPU", MEAN: "the mean latency"}
TABLE = "metricstream study, phases table"
EXPECTED = "metricstream study, phase 7 (expected there, never measured)"
# The direction of success in each phase; phases 4 and 5 have no published figure.
SUCCEEDED: dict[str, tuple[Direction | None, str]] = {
    "phase_1": ("greater", "a thread per request raises success (81% to 88%)"),
    "phase_2": ("greater", "producer and consumers raise success (59% to 66%)"),
    "phase_3": (None, "a linear parser instead of a quadratic one (80.2%, one figure only)"),
    "phase_4": (None, "a lock-free ring instead of two mutexes (no success is published)"),
    "phase_5": (None, "a mutex per client instead of two for all (no success is published)"),
    "phase_6": ("none", "a pool of 16 leaves success as it is (50.69% to 51.34%)"),
    "phase_7": ("greater", "keep-alive raises success above 95% at the target rate"),
}
_between = partial(between, words=WORDS)


def contrasts(rungs: Collection[str]) -> list[Contrast]:
    """Return every contrast whose rungs the run has."""
    all_contrasts = [*_phases(), *_costs(), *_interactions(), *_saturated(), *_naive()]
    return having(all_contrasts, rungs)


def _phases() -> Iterator[Contrast]:
    for phase, (direction, claim) in SUCCEEDED.items():
        source = EXPECTED if phase == "phase_7" else TABLE
        yield _between((phase, BEFORE[phase]), SUCCESS, direction, claim, source)


def _costs() -> Iterator[Contrast]:
    """Yield contrasts of the other effects of phases: the time of their part, and CPU."""
    beyond = "beyond the study: CPU of the server for a request"
    yield _between(
        ("long_linear", "long_quadratic"), PARSE, "smaller",
        "a linear parser takes less than a quadratic one (a long body)", f"{TABLE}, phase 3",
    )  # fmt: skip
    yield _between(
        ("phase_4", "phase_3"), LOCK, "none",
        "there is no wait for locks that a lock-free ring could remove (0 to 1 us)",
        f"{TABLE}, phase 4",
    )  # fmt: skip
    yield _between(
        ("phase_5", "phase_3"), MEAN, "smaller",
        "a mutex per client instead of two for all makes it faster (no figure)",
        f"{TABLE}, phase 5",
    )  # fmt: skip
    yield _between(
        ("phase_7", "phase_6"), MEAN, "smaller",
        "keep-alive lowers the mean latency (below 1 ms)", EXPECTED,
    )  # fmt: skip
    for phase in ("phase_6", "phase_7"):
        yield _between((phase, BEFORE[phase]), CPU, None, f"{beyond}, {phase}")


def _interactions() -> Iterator[Contrast]:
    """Yield claims 1 and 2 at the target rate, seen in the server's CPU and the mean latency."""
    new, reused = (
        ("pool_closes_new", "thread_closes_new"),
        ("pool_keeps_reused", "thread_keeps_reused"),
    )
    for response, measure in SEEN_IN.items():
        yield _between(
            new, response, "none",
            f"while every request connects, a thread pool makes no difference to {measure}",
            "metricstream study, claim 2",
        )  # fmt: skip
        yield _between(
            reused,
            response,
            None,
            f"beyond the study: {measure} with a pool where connections are kept",
        )
        yield _interaction(response, new, reused)
        for threading in THREADINGS:
            yield _between(
                (f"{threading}_closes_new", f"{threading}_keeps_reused"), response, "greater",
                f"setting connections up is what a request costs, seen in {measure} ({threading})",
                "metricstream study, claim 1",
            )  # fmt: skip
    yield _between(
        ("thread_closes_reused", "thread_keeps_reused"), SUCCESS, "smaller",
        "who wants to reuse a connection that the server closes hangs",
        "metricstream study, second load test",
    )  # fmt: skip
    yield _between(
        ("thread_keeps_new", "thread_closes_new"), CPU, None,
        "beyond the study: keep-alive of the server alone, each request on a new connection",
    )  # fmt: skip


def _interaction(response: str, new: tuple[str, str], reused: tuple[str, str]) -> Contrast:
    with_reuse, without_reuse = (
        ContrastPair(numerator={"rung": pool}, denominator={"rung": thread})
        for pool, thread in (reused, new)
    )
    return Contrast(
        name=f"pool x keep-alive, {WORDS[response]}",
        claim=f"beyond the study: what a pool changes in {SEEN_IN[response]} is another with "
        "keep-alive than without",
        response=response,
        numerator=with_reuse.numerator,
        denominator=with_reuse.denominator,
        interaction=without_reuse,
    )


def _saturated() -> Iterator[Contrast]:
    """Yield claims 2 and 3 as throughput of closed loops, which the client may limit."""
    for threading in THREADINGS:
        yield _between(
            (f"full_{threading}_keeps_reused", f"full_{threading}_closes_new"),
            THROUGHPUT, "greater",
            f"keeping connections alive multiplies throughput by 3 to 5 ({threading})",
            "metricstream study, claim 3 (expected there, never measured)",
        )  # fmt: skip
    yield _between(
        ("full_pool_closes_new", "full_thread_closes_new"), THROUGHPUT, "none",
        "while every request connects, a thread pool makes no difference to throughput",
        "metricstream study, claim 2",
    )  # fmt: skip


def _naive() -> Iterator[Contrast]:
    """Yield contrasts of the naive load: the second load test, and the server's CPU.

    The module ``limited_by`` judges by its own rule which side was the limit, because the rates of
    the two generators are different counts.
    """
    yield _between(
        ("naive_closes_reused", "naive_keeps_reused"), TOLD_SUCCESS, "smaller",
        "a client that keeps its connection hangs where the server closes it",
        "metricstream study, second load test",
    )  # fmt: skip
    for naive, of_lab in OF_THE_LAB.items():
        yield _between(
            (naive, of_lab), CORES, None,
            "beyond the study: the server's CPU with the naive client's load and with the lab's "
            f"({LOAD_TESTS[naive]})",
        )  # fmt: skip
