"""Simulated times that hold some of the client's own, and whether a comparison allows for it."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd

from perflab.analysis.blocks import ends_of
from perflab.recordings.responses import client_column
from perflab.statistics.comparison import Effect, effect_of, effect_within
from perflab.statistics.two_samples import Rate
from tests.support.synthetic import ON_AND_OFF, contrast_of

RESPONSE, OF_TRIALS = "mean_ms", 0.03
SIDES = ON_AND_OFF[::-1]
CONTRAST = contrast_of(*SIDES, response=RESPONSE)
ALIKE, BY_TRIAL, BY_SIDE = "alike", "by trial", "all on one side, none on the other"


@dataclass(frozen=True)
class ClientTime:
    """What the client found of its own, as a share of the baseline's time, and what of it counts.

    The same share counts on both sides (``ALIKE``), any in each trial, or all of it on one side and
    nothing on the other. With ``one_sided`` the client found it on one side, and all of it counts.
    """

    share: float
    counts: str = ALIKE
    one_sided: bool = False


@dataclass(frozen=True)
class Held:
    """How often intervals hold the true ratio, those of the measured times, and exclude 1."""

    within: Rate
    measured: Rate
    shown: Rate


def trials_of(
    random: np.random.Generator,
    blocks: int,
    client: ClientTime,
    ratio: float,
    noise: float = OF_TRIALS,
) -> pd.DataFrame:
    """Return the trials of both sides of a run: times, and what may be the client's own."""
    true = np.array([[ratio], [1.0]]) * np.exp(noise * random.standard_normal((2, blocks)))
    found = np.full((2, blocks), client.share / (1 - client.share))
    counts = np.full((2, blocks), random.random())
    if client.one_sided:
        found[0], counts = 0.0, np.ones((2, blocks))
    elif client.counts == BY_TRIAL:
        counts = random.random((2, blocks))
    elif client.counts == BY_SIDE:
        counts = np.repeat(random.permutation([[0.0], [1.0]]), blocks, axis=1)
    sides = [
        {
            "treatment": side.name, "block": np.arange(blocks), client_column(RESPONSE): of_side,
            RESPONSE: time,
        }
        for side, of_side, time in zip(SIDES, found, true + counts * found, strict=True)
    ]  # fmt: skip
    return pd.concat([pd.DataFrame(side) for side in sides], ignore_index=True)


def effects_of(trials: pd.DataFrame) -> tuple[Effect, Effect]:
    """Return the effect of a simulated run, and that of the measured times alone."""
    names = {tuple(side.levels.items()): side.name for side in SIDES}
    record = SimpleNamespace(selected=lambda levels: [names[tuple(levels.items())]])
    run = SimpleNamespace(record=record, judged_blocks=int(trials["block"].max()) + 1)
    ends, _ = ends_of(run, CONTRAST, trials)  # type: ignore[arg-type]
    return effect_within(ends), effect_of(ends.measured)


def held(
    random: np.random.Generator, sets: int, blocks: int, client: ClientTime, ratio: float
) -> Held:
    """Return how often simulated runs hold the true ratio, and show that it is not 1."""
    within = measured = shown = 0
    for _ in range(sets):
        effect, of_measured = effects_of(trials_of(random, blocks, client, ratio))
        within += effect.low <= ratio <= effect.high
        measured += of_measured.low <= ratio <= of_measured.high
        shown += effect.low > 1 or effect.high < 1
    return Held(Rate(within, sets), Rate(measured, sets), Rate(shown, sets))
