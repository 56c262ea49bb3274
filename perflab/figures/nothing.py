"""A figure or a panel that has nothing to show, and says in a sentence why."""

from __future__ import annotations

from matplotlib.axes import Axes

from perflab.figures.canvas import LabFigure, canvas_of, finish
from perflab.figures.theme import MUTED
from perflab.figures.words import wrap
from perflab.recordings import Run

SIZE_PT = 9.0


def why(run: Run) -> str:
    """Say in one sentence why a run has nothing to draw: its trials, and what became of them."""
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
    return "The valid trials of the run hold nothing that this figure shows."


def empty_figure(run: Run, title: str, words: str = "") -> LabFigure:
    """Return a figure that shows nothing and says why: by default what became of the trials."""
    figure = canvas_of(run, title, plot_height_in=1.0)
    say(figure.subplots(), words or why(run), width_in=5.5)
    return finish(figure)


def say(axes: Axes, words: str, width_in: float) -> None:
    """Write a sentence into the middle of a panel, broken to ``width_in`` inches; no axes."""
    axes.set_axis_off()
    axes.text(
        0.5, 0.5, "\n".join(wrap(words, SIZE_PT, width_in)), transform=axes.transAxes,
        ha="center", va="center", size=SIZE_PT, color=MUTED,
    )  # fmt: skip
