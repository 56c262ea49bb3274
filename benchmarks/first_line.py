"""How often does the first line of a duel name a difference that is none, and does a gate fail?

Duels are drawn with a planted truth, and go through the functions that print a duel's answer:
evaluate, pairs_of, judged, answer. The noise of a trial beyond its block is 2% in mean, p50 and
CPU, 6% in p99 and 0.5% in memory, and 2 of 1,000 requests fail. *alike*: mean, p50, p99 and CPU
share most of the noise of a trial; *apart*: nothing. Prints the tables of
``benchmarks/results/first_line.txt``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from benchmarks import bench
from perflab.analysis import decision, evaluation
from perflab.analysis.gates.thresholds import Crossed, judged, thresholds_of
from perflab.recordings import Contrast, Run
from perflab.recordings.responses import FAILURES
from perflab.reports.duels import answer, pairs_of
from perflab.statistics.comparison import Ends
from tests.golden.recordings import CASES, STORIES, Case, write_recording

NOISES = {
    "mean_ms": 0.02, "p50_ms": 0.02, "p99_ms": 0.06, "service_cpu_us_per_request": 0.02,
    "service_memory_bytes": 0.005,
}  # fmt: skip
SHARED = ("mean_ms", "p50_ms", "p99_ms", "service_cpu_us_per_request")
CORRELATION, FAILED, REQUESTS = 0.8, 0.002, 1_000
LIMITS = (
    "throughput<0.952380952", "mean>1.05", "p50>1.05", "p99>1.05", "cpu>1.05", "memory>1.05",
    "failures>0.01",
)  # fmt: skip
NAMED = (" is ", " answers ", " uses ", " has ")
# By name: how much worse in everything, how many more requests fail, and the kinds of noise.
TRUTHS = {
    "equal": (0.0, 0.0, ("apart", "alike")),
    "2% worse": (0.02, 0.0, ("alike",)),
    "5% worse, 1 point more failures (the bounds)": (0.05, 0.01, ("apart", "alike")),
    "10% worse, 3 points more failures": (0.10, 0.03, ("alike",)),
    "30% worse, 5 points more failures": (0.30, 0.05, ("alike",)),
}
Drawn = dict[str, np.ndarray]


def recorded(folder: Path, variants: int, blocks: int) -> Run:
    """Return a recording of a duel, whose values are drawn anew later."""
    names = ("old", *(f"new{number}" for number in range(1, variants)))
    texts = tuple(f"{name}=command:python3 server.py --port {{port}}" for name in names)
    case = Case("custom_service", parameters={"variants": texts, "design": "trials"})
    story = replace(STORIES["unclear"], blocks=blocks)
    with patch.dict(CASES, {"duel": case}), patch.dict(STORIES, {"drawn": story}):
        return write_recording(folder, "duel/drawn")


def draw(run: Run, random: np.random.Generator, alike: bool, worse: float, failed: float) -> Drawn:
    """Return the values of trials (failures: shares, else logs), shape (variants, blocks)."""
    shape = (len(run.record.treatments), run.record.blocks)
    is_new = (np.arange(shape[0]) > 0)[:, None]
    common, drawn = random.standard_normal(shape), {}
    for name, noise in NOISES.items():
        part = np.sqrt(CORRELATION) if alike and name in SHARED else 0.0
        own = np.sqrt(1 - part**2) * random.standard_normal(shape)
        drawn[name] = noise * (part * common + own) + np.log1p(worse) * is_new
    drawn["throughput_rps"] = -drawn["mean_ms"]
    drawn[FAILURES] = random.binomial(REQUESTS, FAILED + failed * is_new, shape) / REQUESTS
    return drawn


@contextmanager
def values_of(run: Run, drawn: Drawn) -> Iterator[None]:
    """Let evaluate take drawn values for those of the trials, and leave out what is not asked."""
    places = {item.levels["variant"]: at for at, item in enumerate(run.record.treatments)}

    def ends_of(_: Run, contrast: Contrast, __: pd.DataFrame) -> tuple[Ends, None]:
        new, old = (places[side["variant"]] for side in (contrast.numerator, contrast.denominator))
        values = pd.Series(drawn[contrast.response][new] - drawn[contrast.response][old])
        return Ends(values, values), None

    parts: dict[str, Any] = {
        "ends_of": ends_of, "noise_flags": lambda _: (), "doubt": lambda _: "",
        "_counted": lambda _, finding: finding, "_drifts": lambda *_: (),
        "scope_of": lambda *_: "",
    }  # fmt: skip
    with ExitStack() as stack:
        for name, part in parts.items():
            stack.enter_context(patch.object(evaluation, name, part, create=True))
        stack.enter_context(patch.object(decision, "_blocks", lambda *_: 10_000))
        stack.enter_context(patch.object(Run, "trials_of", lambda *_: pd.DataFrame()))
        yield


def told(run: Run, drawn: Drawn) -> tuple[bool, bool, bool]:
    """Return whether a first line names a difference, and whether a gate fails, or passes."""
    thresholds = thresholds_of(LIMITS)
    with values_of(run, drawn):
        # The findings of a run are computed once, so every draw is a run of its own.
        findings = evaluation.evaluate(copy(run))
    pairs = pairs_of(findings, thresholds, judged(thresholds, findings))
    lines = (answer(replace(pair, gate={}), is_only=True) for pair in pairs)
    is_named = any(word in line for line in lines for word in NAMED)
    results = {result for pair in pairs for result in pair.gate.values()}
    return is_named, Crossed.YES in results, results == {Crossed.NO}


def row(run: Run, truth: str, noise: str, sets: int, seed: int) -> dict[str, str]:
    """Return how often a difference is named, and how often a gate of seven thresholds fails."""
    worse, failed, _ = TRUTHS[truth]
    random, found = np.random.default_rng(seed), np.zeros(3)
    for _ in range(sets):
        found += told(run, draw(run, random, noise == "alike", worse, failed))
    named, fails, passes = (f"{share:.1%}" for share in found / sets)
    return {
        "truth": truth, "noise": noise, "names a difference": named, "gate FAILED": fails,
        "gate passed": passes,
    }  # fmt: skip


def main() -> None:
    """Draw all cases and print the tables."""
    given = bench.options(__doc__, blocks=(10, "blocks of a duel"), sets=300, seed=20_261_128)
    with tempfile.TemporaryDirectory() as folder:
        for variants in (2, 3):
            run = recorded(Path(folder) / str(variants), variants, given.blocks)
            rows = [
                row(run, truth, noise, given.sets, given.seed)
                for truth, (*_, noises) in TRUTHS.items()
                for noise in noises
            ]
            print(f"{variants} variants, {given.blocks} blocks, {given.sets} duels for each row")
            bench.show(rows)


if __name__ == "__main__":
    main()
