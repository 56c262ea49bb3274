"""What surrounds every picture of a run: its words, its origin, and how treatments appear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perflab.figures.looks import Look, compared_pairs, looks_of
from perflab.figures.origin import footer, origin_of
from perflab.recordings import Run


@dataclass(frozen=True)
class Page:
    """All that a drawing may know of a run beside its table: the record, and counts of trials.

    ``experiment`` stands before every title; ``title`` and ``origin`` go into the files' metadata,
    and ``footer`` is the small print. ``looks`` are the treatments' colours, markers and labels,
    those that are compared side by side; ``pairs`` are those that claims compare; ``nothing`` says
    in a sentence why there may be nothing to draw.
    """

    experiment: str
    title: str
    footer: str
    origin: Mapping[str, Any]
    looks: Mapping[str, Look]
    pairs: tuple[tuple[str, str], ...]
    nothing: str


def page_of(run: Run) -> Page:
    """Return the page of a run."""
    return Page(
        experiment=run.record.experiment,
        title=run.record.title,
        footer=footer(run),
        origin=origin_of(run),
        looks=looks_of(run.record),
        pairs=tuple(compared_pairs(run.record)),
        nothing=_why_nothing(run),
    )


def _why_nothing(run: Run) -> str:
    trials = run.trials()
    if not len(trials):
        because = f" ({run.record.reason})" if run.record.reason else ""
        return f"The run has no trial: it is {run.record.state}{because}."
    trials = trials[~trials["superseded"].astype(bool)]
    states = trials["state"].value_counts()
    if not states.get("valid", 0):
        counts = " and ".join(f"{n} {state}" for state, n in states.items()) or "all superseded"
        reasons = [str(given) for each in trials["reasons"] for given in each]
        because = f": {reasons[0]}" if reasons else ""
        return f"No trial of the run is valid ({counts}{because})."
    if run.missing:
        return f"This recording lacks the rows of {' and '.join(run.missing)}."
    return "The valid trials of the run hold nothing that this figure shows."
