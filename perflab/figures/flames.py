"""The flame graphs of a run: one per profiled treatment, and what changed between two of them."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pandas as pd

from perflab.analysis.profile import PERCENT, Profile, profile_of, profiled
from perflab.figures.calls import tree
from perflab.figures.flame_graphs import FlameGraph, Words, difference_graph, profile_graph
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.recordings import Run

UNIT = "% of the time"
COLUMNS = ["treatment", "trials", "stack", "samples"]


def flame_views(run: Run) -> list[View]:
    """Return a view per profiled treatment, and one per change from one to the next."""
    names = profiled(run)
    labels = {item.name: item.label or item.name for item in run.record.treatments}
    own = [
        View(f"flame_{number}", f"where the time goes: {labels[name]}", partial(_table, name),
             draw_flame)
        for number, name in enumerate(names)
    ]  # fmt: skip
    changes = [
        View(f"flame_difference_{number}", f"what changes to {labels[after]}",
             partial(_change, before, after), draw_difference)
        for number, (before, after) in enumerate(pairwise(names))
    ]  # fmt: skip
    return [*own, *changes]


def _table(treatment: str, run: Run) -> pd.DataFrame:
    """Return the collapsed stacks of a treatment over its valid trials (so many), with samples."""
    profile = profile_of(run, treatment)
    stacks = pd.DataFrame(profile.stacks.items(), columns=["stack", "samples"])
    return stacks.assign(treatment=treatment, trials=len(profile.own))[COLUMNS]


def _change(before: str, after: str, run: Run) -> pd.DataFrame:
    """Return the stacks of two treatments, the earlier first; shares of the time in percent."""
    return pd.concat(
        [_timed(profile_of(run, treatment)) for treatment in (before, after)], ignore_index=True
    )


def _timed(profile: Profile) -> pd.DataFrame:
    stacks = pd.DataFrame(profile.stacks.items(), columns=["stack", "samples"])
    scale = PERCENT * float(profile.seen_share.mean()) / profile.samples
    return stacks.assign(treatment=profile.treatment, percent_of_time=scale * stacks["samples"])


def draw_flame(table: pd.DataFrame, page: Page) -> FlameGraph:
    """Return the flame graph of one treatment."""
    treatment, trials = table["treatment"].iloc[0], table["trials"].iloc[0]
    words = Words(
        title=f"Where the time goes: {page.looks[treatment].label}",
        subtitle=f"{table['samples'].sum():,} samples of {trials} trials, of a thread that ran;"
        " width: share of the samples; colour: package, with its own share.\n"
        "A rectangle stands upon its caller; hold the pointer over one for its name and number.",
        footer=page.footer,
        unit="samples",
    )
    return profile_graph(tree(_weights(table, "samples")), words)


def draw_difference(table: pd.DataFrame, page: Page) -> FlameGraph:
    """Return the flame graph of a second treatment, coloured by what changed from the first.

    Widths and changes are in percent of the time: samples over the profiler's looks.
    """
    before, after = table["treatment"].unique()
    first, second = (table[table["treatment"] == name] for name in (before, after))
    words = Words(
        title=f"What changes: from {page.looks[before].label} to {page.looks[after].label}",
        subtitle=f"{first['samples'].sum():,} and {second['samples'].sum():,} samples; width: time "
        "in the second; red: more than in the first, blue: less. Colours have no intervals:\n"
        "chance alone gives some too; a change is shown where its p-value in the table, corrected "
        "over all functions, is small. What is only in the first has no width here.",
        footer=page.footer,
        unit=UNIT,
    )
    weights = (_weights(own, "percent_of_time") for own in (second, first))
    return difference_graph(tree(*weights), words)


def _weights(table: pd.DataFrame, column: str) -> dict[str, float]:
    return dict(zip(table["stack"], table[column].tolist(), strict=True))
