"""What the lab found beside what was planted: estimates, intervals and truths."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.errors import AnalysisError
from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.looks import PALETTE
from perflab.figures.theme import INK, MUTED, styled
from perflab.recordings import Run
from perflab.systems.lab.resolution import FACTOR, KNOWN_COLUMNS
from perflab.systems.lab.resolution import known_effects as effects

ROW_IN = 0.3
EXPERIMENT = "lab_check"


def table(run: Run) -> pd.DataFrame:
    """Return the known effects of a run of ``lab_check``; no rows for other runs."""
    nothing = pd.DataFrame(columns=KNOWN_COLUMNS)
    if run.record.experiment != EXPERIMENT or FACTOR not in run.record.factors:
        return nothing
    try:
        return effects(run)
    except AnalysisError:
        return nothing


@styled
def known_effects(run: Run) -> Figure | None:
    """Draw each service's response against the first copy's, with its truth; None for others."""
    found = table(run)
    if found.empty:
        return None
    figure = canvas_of(
        run,
        "what was planted, and what the lab found",
        plot_height_in=0.7 + ROW_IN * len(found),
        subtitle="Mean response time against that of copy A1: estimate over all blocks with its "
        "95% interval. A copy is the same service; the others work longer by a known share.",
        key=[
            Line2D([], [], color=PALETTE[0], marker="o", ms=5, lw=1.6, label="measured"),
            Line2D([], [], color=INK, marker="|", ms=11, mew=1.6, ls="", label="truth"),
        ],
    )
    axes = figure.subplots()
    places = range(len(found))[::-1]
    axes.axvline(1.0, color=MUTED, lw=0.8)
    axes.hlines(places, found["low"], found["high"], color=PALETTE[0], lw=1.6)
    axes.plot(found["estimate"], places, "o", ms=5, color=PALETTE[0])
    axes.plot(found["expected"], places, "|", ms=13, mew=1.6, color=INK, zorder=4)
    axes.set_yticks(list(places), [_label(name) for name in found["service"]])
    axes.set_ylim(-0.6, len(found) - 0.4)
    axes.set_xlabel("ratio of mean response time")
    only_grid(axes, "x")
    return finish(figure)


def _label(service: str) -> str:
    return f"{service} (a copy)" if service.startswith("A") else f"{service} work"
