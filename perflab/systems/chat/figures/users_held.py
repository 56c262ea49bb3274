"""Latency against the number of users, configuration by configuration, with the study's targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure, empty_figure
from perflab.figures.charts import (
    Axis,
    Intervals,
    Lines,
    Plane,
    Planes,
    Points,
    Published,
    RowChart,
    Rules,
    Texts,
)
from perflab.figures.evidence import trials_shown
from perflab.figures.origin import Page
from perflab.figures.points import OTHER_LOAD, PUBLISHED, SAME_LOAD
from perflab.figures.theme import PALETTE, Look, appearance
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.analysis.users_held import SAME, held_sentences, targets_met, targets_ms
from perflab.systems.chat.analysis.users_held import users_held as held_rungs
from perflab.systems.chat.figures.ladder import has_rungs

TITLE = "users held within the targets"
# An interval may reach this many times beyond the trials.
BEYOND = 3.0
SAID, TRIAL, TYPICAL, TARGET = "said", "trial", "typical value", "target"
COLUMNS = ["what", "configuration", "users", "percentile", "state", "ms", "low", "high", "words"]
RUNGS = ["configuration", "users", "treatment"]


def users_held_table(run: Run) -> pd.DataFrame:
    """Return percentiles of deliveries by configuration and users, and the study's targets.

    ``what`` is a trial that did not fail (with its state), a typical value of several trials (with
    its 95% interval), a target, or ``said``: a sentence on a configuration, in ``words``.
    """
    rungs = _of_several(held_rungs(run))
    if rungs.empty:
        return pd.DataFrame(columns=COLUMNS)
    names = rungs["configuration"].drop_duplicates()
    sentences = pd.DataFrame({"what": SAID, "configuration": names, "words": held_sentences(rungs)})
    trials = _trials(run, rungs)
    parts = [
        part.assign(percentile=response.removeprefix("delivery_").removesuffix("_ms"))
        for response, most_ms in targets_ms().items()
        for part in (
            trials.assign(what=TRIAL, ms=trials[response].astype(float)),
            _typical(rungs, response),
            pd.DataFrame([{"what": TARGET, "ms": most_ms}]),
        )
    ]
    return pd.concat([sentences, *parts], ignore_index=True).reindex(columns=COLUMNS)


def _of_several(rungs: pd.DataFrame) -> pd.DataFrame:
    """Return the rungs of configurations that have several numbers of users."""
    return rungs[rungs.groupby("configuration")["users"].transform("nunique") > 1]


def _trials(run: Run, rungs: pd.DataFrame) -> pd.DataFrame:
    labels = {
        treatment.name: treatment.label or treatment.name for treatment in run.record.treatments
    }
    trials = trials_shown(run)
    shown = trials.assign(treatment=trials["treatment"].map(labels)).reindex(
        columns=["treatment", "state", *targets_ms()]
    )
    return shown.merge(rungs[RUNGS], on="treatment")


def _typical(rungs: pd.DataFrame, response: str) -> pd.DataFrame:
    several = rungs[rungs[f"{response}_n"] > 1]
    numbers = {"ms": response, "low": f"{response}_low", "high": f"{response}_high"}
    values = {name: several[column].astype(float) for name, column in numbers.items()}
    return several[["configuration", "users"]].assign(what=TYPICAL, **values)


def varies_users(run: Run) -> bool:
    """Return whether a configuration of the run has several numbers of users."""
    return {"rung", "users"} <= set(run.record.factors) and len(_of_several(held_rungs(run))) > 0


def draw_users_held(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw three percentiles against users."""
    sentences = " ".join(f"{words[:1].upper()}{words[1:]}." for words in table["words"] if words)
    if not table.loc[table["what"] == TRIAL, "ms"].notna().any():
        return empty_figure(page, TITLE, f"{sentences} {page.nothing}")
    looks = dict(_looks(table))
    style: dict[str, Any] = {"by": "configuration", "looks": looks}
    chart = Planes(
        TITLE,
        f"{sentences} Small points: trials (hollow: refused); lines: typical values, where there"
        " are several, with 95% intervals where n allows them (an arrow: it goes on).",
        layers=(
            Points((TRIAL,), how={"s": 9, "alpha": 0.8, "zorder": 2}, keyed=False,
                   **style),
            Lines((TYPICAL,), marked=True, **style),
            Intervals((TYPICAL,), along="y", beyond=BEYOND, among=(TRIAL,),
                      lw=1.1, size=0, keyed=False, **style),
            Rules((TARGET,), TARGET, along="y"),
        ),
        planes=_planes,
        panel="percentile",
        x="users",
        y="ms",
        across=3,
        height_in=3.2,
        share_y=True,
    )  # fmt: skip
    return chart.draw(table, page)


def _planes(table: pd.DataFrame, _: Page) -> dict[str, Plane]:
    axes = Axis("users"), Axis("latency of deliveries, ms (log)", log=True)
    shares = sorted(set(table["percentile"]) - {""})
    return {share: Plane(*axes, title=share) for share in shares}


def _looks(table: pd.DataFrame) -> Iterator[tuple[str, Look]]:
    for place, name in enumerate(table.loc[table["what"] == SAID, "configuration"]):
        yield name, Look(*appearance(place), label=name.replace("_", " "))


USERS_HELD = View("users_held", TITLE, users_held_table, draw_users_held, suits=varies_users)


TARGET_TITLE = "the three targets, met in k of n trials"
MEASURED = "measured"
LOOKS = {MEASURED: Look(PALETTE[0], "o", MEASURED)}
SHARES = {0.0: "0", 0.5: "50%", 1.0: "100%"}


def targets_table(run: Run) -> pd.DataFrame:
    """Return :func:`targets_met` of the treatments that have trials."""
    table = targets_met(run)
    return table[table["trials"] > 0]


def draw_targets(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel for each target and a row for each treatment."""
    kinds = " and ".join(sorted(set(table["of"])))
    limits = table.groupby("percentile")["target_ms"].first().to_dict()
    chart = RowChart(
        TARGET_TITLE,
        f"Share of all trials of a rung whose percentile of {kinds} is within the target, with its"
        " exact 95% interval; a trial that was refused or has too few of them is not within it."
        " Pings stand for a rung at the published load, deliveries for any other. Published: 100%"
        " (met) or 0.",
        layers=(
            Intervals((MEASURED,), at=0.22, by="what", looks=LOOKS, within=(0.0, 1.0), size=5),
            Published(at=-0.24),
            Texts((MEASURED,), at=-0.02, muted=False),
        ),
        panels={
            str(share): Axis(f"{share} within {limit:,.0f} ms", ends=(-0.06, 1.06), ticks=SHARES)
            for share, limit in limits.items()
        },
        panel="percentile",
    )
    return chart.draw(_as_drawn(table), page)


def _as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for the measured share of each target, and one for the published value."""
    measured = table.assign(what=MEASURED, state="", value=table["met"] / table["trials"])
    measured["words"] = measured["met"].map("{:g} of ".format) + measured["trials"].map(
        "{:g}".format
    )
    too_few = table["unknown"] == table["trials"]
    measured.loc[too_few, ["value", "low", "high"]] = np.nan
    measured.loc[too_few, "words"] = "n too small"
    with_published = table[table["published_ms"].notna()]
    published = with_published.assign(
        what=PUBLISHED,
        state=np.where(with_published["load"] == SAME, SAME_LOAD, OTHER_LOAD),
        value=(with_published["published_ms"] <= with_published["target_ms"]).astype(float),
    )
    return pd.concat([measured, published], ignore_index=True)


TARGETS_MET = View("targets_met", TARGET_TITLE, targets_table, draw_targets, suits=has_rungs)
