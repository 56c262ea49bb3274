"""The flame graphs of a run: one per profiled treatment, and what changed between two of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pandas as pd

from perflab.analysis.profile import PERCENT, Profile, profile_of, profiled
from perflab.figures.calls import tree
from perflab.figures.export import save_table
from perflab.figures.flame import FlameGraph, Words, flame_graph
from perflab.figures.flame import flame_difference as difference_graph
from perflab.figures.origin import footer, provenance_of
from perflab.recordings import Run

UNIT = "% of the time"


def flame(run: Run, treatment: str = "") -> FlameGraph | None:
    """Return the flame graph of a treatment (the first profiled one), over its valid trials.

    None where no profiler ran, or no trial with one is valid.
    """
    names = profiled(run)
    return _flame(run, treatment or names[0]) if names else None


def _flame(run: Run, treatment: str) -> FlameGraph:
    profile = profile_of(run, treatment)
    words = Words(
        title=f"Where the time goes: {profile.label}",
        subtitle=f"{profile.samples:,} samples of {len(profile.own)} trials, of a thread that ran;"
        " width: share of the samples; colour: package, with its own share.\n"
        "A rectangle stands upon its caller; hold the pointer over one for its name and number.",
        footer=footer(run),
        unit="samples",
    )
    return flame_graph(tree(profile.stacks), words, provenance_of(run, "flame"))


def flame_difference(run: Run, before: str = "", after: str = "") -> FlameGraph | None:
    """Return the flame graph of ``after``, coloured by what changed from ``before``.

    By default from the first profiled treatment to the last; None where there are not two. Widths
    and changes are in percent of the time: samples over the profiler's looks.
    """
    names = profiled(run)
    return _difference(run, before or names[0], after or names[-1]) if len(names) > 1 else None


def _difference(run: Run, before: str, after: str) -> FlameGraph:
    first, second = profile_of(run, before), profile_of(run, after)
    words = Words(
        title=f"What changes: from {first.label} to {second.label}",
        subtitle=f"{first.samples:,} and {second.samples:,} samples; width: time in the second; "
        "red: more than in the first, blue: less. Colours have no intervals:\n"
        "chance alone gives some too; a change is shown where its p-value in the table, corrected "
        "over all functions, is small. What is only in the first has no width here.",
        footer=footer(run),
        unit=UNIT,
    )
    root = tree(_percent_of_time(second), _percent_of_time(first))
    return difference_graph(root, words, provenance_of(run, "flame_difference"))


def _percent_of_time(profile: Profile) -> dict[str, float]:
    scale = PERCENT * float(profile.seen_share.mean()) / profile.samples
    return {stack: samples * scale for stack, samples in profile.stacks.items()}


def save_flames(run: Run, directory: Path) -> list[Path]:
    """Save every flame graph of a run as SVG, each with its stacks as CSV; none without stacks."""
    names = profiled(run)
    paths: list[Path] = []
    for number, name in enumerate(names):
        paths.append(_flame(run, name).save(directory / f"flame_{number}.svg"))
        stacks = pd.DataFrame(profile_of(run, name).stacks.items(), columns=["stack", "samples"])
        paths.append(save_table(stacks, f"flame_{number}", directory))
    for number, (before, after) in enumerate(pairwise(names)):
        graph = _difference(run, before, after)
        paths.append(graph.save(directory / f"flame_difference_{number}.svg"))
    return paths
