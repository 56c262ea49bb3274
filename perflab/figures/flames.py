"""The flame graphs of a run: one per profiled treatment, and what changed between two of them."""

from __future__ import annotations

from functools import partial

import pandas as pd

from perflab.analysis.trials.profiles import PERCENT, Profile, profile_of, profiled
from perflab.figures.calls import tree
from perflab.figures.flame_graphs import FlameGraph, Words, difference_graph, profile_graph
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.recordings import Run

UNIT = "% of the time"
COLUMNS = ["treatment", "trials", "chain", "samples"]


def flame_views(run: Run) -> list[View]:
    """Return a view per profiled treatment, and one per change from one to the next.

    The first of both are there in any case; they suit no run that nobody profiled.
    """
    count = len(profiled(run))
    own = [_flame(number, run) for number in range(max(1, count))]
    return [*own, *(_difference(number, run) for number in range(max(1, count - 1)))]


def _flame(number: int, run: Run) -> View:
    title = " ".join(["where the time goes:", *_labels(run, number)]).rstrip(":")
    return View(f"flame_{number}", title, partial(_chains, number), draw_flame,
                suits=partial(_has_profiles, number + 1), narrows=False)  # fmt: skip


def _difference(number: int, run: Run) -> View:
    title = " ".join(["what changes between profiles:", *_labels(run, number + 1)]).rstrip(":")
    return View(f"flame_difference_{number}", title, partial(_change, number), draw_difference,
                suits=partial(_has_profiles, number + 2), narrows=False)  # fmt: skip


def _labels(run: Run, number: int) -> list[str]:
    """Return the label of a profiled treatment; nothing where there are not so many."""
    labels = {item.name: item.label or item.name for item in run.record.treatments}
    return [labels[name] for name in profiled(run)[number : number + 1]]


def _has_profiles(count: int, run: Run) -> bool:
    return len(profiled(run)) >= count


def _chains(number: int, run: Run) -> pd.DataFrame:
    """Return the call chains of a treatment over its valid trials (so many), with samples."""
    profile = profile_of(run, profiled(run)[number])
    chains = pd.DataFrame(profile.chains.items(), columns=["chain", "samples"])
    return chains.assign(treatment=profile.treatment, trials=len(profile.own))[COLUMNS]


def _change(number: int, run: Run) -> pd.DataFrame:
    """Return the chains of two treatments, the earlier first; shares of the time in percent."""
    pair = profiled(run)[number : number + 2]
    return pd.concat([_timed(profile_of(run, name)) for name in pair], ignore_index=True)


def _timed(profile: Profile) -> pd.DataFrame:
    chains = pd.DataFrame(profile.chains.items(), columns=["chain", "samples"])
    scale = PERCENT * float(profile.seen_share.mean()) / profile.samples
    return chains.assign(treatment=profile.treatment, percent_of_time=scale * chains["samples"])


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
    return dict(zip(table["chain"], table[column].tolist(), strict=True))
