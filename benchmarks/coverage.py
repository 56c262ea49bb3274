"""Do the intervals of knees cover?

Each row is a kind of data of which the truth is known, drawn many times. Intervals should cover
93 to 97%, and what is not there should be found in about 5%.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from benchmarks import bench
from perflab.statistics.knees import knee

Found = dict[str, float]
KNEE = 0.55
KINDS = ("bent", "in proportion", "in proportion, bent", "straight", "queue", "step")


def ar1(
    random: np.random.Generator, shape: tuple[int, int], rho: float, heavy: bool = False
) -> np.ndarray:
    """Return AR(1) rows of unit variance, with Student's t of 3 degrees where heavy."""
    wider = (shape[0], shape[1] + 50)
    steps = random.standard_t(3, wider) if heavy else random.normal(size=wider)
    return lfilter([1], [1, -rho], steps * math.sqrt(1 - rho**2), axis=1)[:, 50:]


def cpu_shares(random: np.random.Generator, design: str) -> np.ndarray:
    """Return CPU shares, shape (trials, windows)."""
    if design == "ramps":
        middle = np.broadcast_to(np.linspace(0.15, 0.85, 60), (12, 60))
    else:
        middle = np.broadcast_to(np.tile(np.linspace(0.15, 0.85, 6), 4)[:, None], (24, 40))
    return np.clip(middle + 0.05 * ar1(random, middle.shape, 0.5), 0.02, 0.98)


def latency_of(kind: str, cpu: np.ndarray) -> np.ndarray:
    """Return latency over CPU, in ms."""
    latencies: dict[str, np.ndarray] = {
        "bent": 5 + 1.5 * cpu + 30 * np.maximum(0, cpu - KNEE),
        "in proportion": 20 * cpu,
        "in proportion, bent": 20 * cpu + 40 * np.maximum(0, cpu - KNEE),
        "straight": 5 + 10 * cpu,
        "queue": 5 / (1 - np.minimum(cpu / 1.05, 0.99) ** 2),
        "step": (5 + 1.5 * cpu) * (1 + (cpu > KNEE)),
    }
    return latencies[kind]


def windows_of(
    random: np.random.Generator, cpu: np.ndarray, usual_ms: np.ndarray, heavy: bool
) -> pd.DataFrame:
    """Return windows with AR(1) noise at 0.6 and trials that differ by 8%."""
    noise = 0.2 * ar1(random, cpu.shape, 0.6, heavy) + 0.08 * random.normal(size=(len(cpu), 1))
    trial = np.repeat(np.arange(len(cpu)), cpu.shape[1])
    latency = (usual_ms * np.exp(noise)).ravel()
    return pd.DataFrame({"trial_id": trial, "cpu": cpu.ravel(), "p50_ms": latency})


def of_knee(random: np.random.Generator, design: str, heavy: bool, kind: str) -> Found:
    """Return whether a knee was found, and whether its interval holds the truth."""
    cpu = cpu_shares(random, design)
    found = knee(windows_of(random, cpu, latency_of(kind, cpu), heavy), "cpu")
    if kind == "step":
        return held(not math.isnan(found.step), found.low, found.high, KNEE)
    if kind == "queue":
        # It has no knee: a bend without the word that a smooth curve fits as well is a false one.
        false = found.supported and not found.smooth
        return {"found": float(false), "covered": math.nan, "width": found.high - found.low}
    return held(found.supported, found.low, found.high, KNEE)


def held(found: bool, low: float, high: float, truth: float) -> Found:
    """Return what one data set says; coverage counts only where something was found."""
    covered = float(low <= truth <= high) if found else math.nan
    return {"found": float(found), "covered": covered, "width": high - low}


def cases() -> Iterator[tuple[str, Callable[[np.random.Generator], Found]]]:
    """Yield every kind of data with its name."""
    for design in ("ramps", "loads"):
        for heavy in (False, True):
            for kind in KINDS:
                name = f"knee: {kind}, {design}{', heavy tails' * heavy}"
                yield name, partial(of_knee, design=design, heavy=heavy, kind=kind)


def main() -> None:
    """Run every kind and print the table."""
    given = bench.options(
        __doc__,
        sets=(1000, "data sets of each kind"),
        seed=1,
        only=("", "kinds whose name begins so"),
    )
    table = []
    for name, draw in cases():
        if name.startswith(given.only):
            random = np.random.default_rng(given.seed)
            rows = pd.DataFrame([draw(random) for _ in range(given.sets)])
            shares = rows.reindex(columns=["found", "covered"]).mean()
            width = rows["width"].median() if "width" in rows else math.nan
            texts = {column: f"{share:.1%}" for column, share in shares.dropna().items()}
            table.append({"data": name, **texts, "width": f"{width:.3g}"})
    bench.show(table)


if __name__ == "__main__":
    main()
