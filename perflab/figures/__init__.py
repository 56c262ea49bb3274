"""Figures of a run: what can be drawn, drawing all of it, and saving it with its origin.

``draw_all(run)`` gives figures to look at, ``save_all(run)`` files for a document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from perflab.figures.export import ProvenanceError, provenance, save, save_table
from perflab.figures.flame import FlameGraph
from perflab.figures.flames import flame, flame_difference, save_flames
from perflab.figures.plots.effect import effect
from perflab.figures.plots.effect import table as effect_table
from perflab.figures.plots.flush_cost import flush_cost
from perflab.figures.plots.flush_cost import table as flush_cost_table
from perflab.figures.plots.latency_cpu import latency_cpu
from perflab.figures.plots.latency_cpu import table as latency_cpu_table
from perflab.figures.plots.latency_ecdf import latency_ecdf
from perflab.figures.plots.latency_ecdf import table as latency_ecdf_table
from perflab.figures.plots.throughput import table as throughput_table
from perflab.figures.plots.throughput import throughput
from perflab.figures.plots.time_breakdown import table as time_breakdown_table
from perflab.figures.plots.time_breakdown import time_breakdown
from perflab.paths import figures_dir
from perflab.recordings import Run
from perflab.systems.chat.analysis.windows import has_streams
from perflab.systems.chat.figures.codec_cost import codec_cost
from perflab.systems.chat.figures.codec_cost import table as codec_cost_table
from perflab.systems.chat.figures.delivery_cpu import delivery_cpu
from perflab.systems.chat.figures.delivery_cpu import table as delivery_cpu_table
from perflab.systems.chat.figures.delivery_volume import delivery_volume
from perflab.systems.chat.figures.delivery_volume import table as delivery_volume_table
from perflab.systems.chat.figures.ladder import ladder
from perflab.systems.chat.figures.ladder import table as ladder_table
from perflab.systems.chat.figures.login_bands import login_bands
from perflab.systems.chat.figures.login_bands import table as login_bands_table
from perflab.systems.chat.figures.stream_timeline import stream_timeline
from perflab.systems.chat.figures.stream_timeline import table as stream_timeline_table
from perflab.systems.chat.figures.users_held import table as users_held_table
from perflab.systems.chat.figures.users_held import users_held
from perflab.systems.chat.figures.volume_users import table as volume_users_table
from perflab.systems.chat.figures.volume_users import volume_users
from perflab.systems.lab.figures.client_cost import client_cost
from perflab.systems.lab.figures.client_cost import table as client_cost_table
from perflab.systems.lab.figures.known_effects import known_effects
from perflab.systems.lab.figures.known_effects import table as known_effects_table

__all__ = [
    "PLOTS",
    "STREAM_PLOTS",
    "FlameGraph",
    "Plot",
    "ProvenanceError",
    "client_cost",
    "codec_cost",
    "delivery_cpu",
    "delivery_volume",
    "draw_all",
    "effect",
    "flame",
    "flame_difference",
    "flush_cost",
    "known_effects",
    "ladder",
    "latency_cpu",
    "latency_ecdf",
    "login_bands",
    "provenance",
    "save",
    "save_all",
    "save_table",
    "stream_timeline",
    "throughput",
    "time_breakdown",
    "users_held",
    "volume_users",
]


@dataclass(frozen=True)
class Plot:
    """One kind of figure: how it is drawn, and the small table it is drawn from."""

    draw: Callable[[Run], Figure | None]
    table: Callable[[Run], pd.DataFrame]


# Every experiment compares something.
EFFECT = {"effect": Plot(effect, effect_table)}

PLOTS: dict[str, Plot] = {
    **EFFECT,
    "throughput": Plot(throughput, throughput_table),
    "latency_ecdf": Plot(latency_ecdf, latency_ecdf_table),
    "time_breakdown": Plot(time_breakdown, time_breakdown_table),
    "latency_cpu": Plot(latency_cpu, latency_cpu_table),
    "flush_cost": Plot(flush_cost, flush_cost_table),
    "client_cost": Plot(client_cost, client_cost_table),
    "known_effects": Plot(known_effects, known_effects_table),
    "codec_cost": Plot(codec_cost, codec_cost_table),
}

# Of runs that measured deliveries of messages; their few requests are logins.
STREAM_PLOTS: dict[str, Plot] = {
    **EFFECT,
    "ladder": Plot(ladder, ladder_table),
    "users_held": Plot(users_held, users_held_table),
    "delivery_cpu": Plot(delivery_cpu, delivery_cpu_table),
    "stream_timeline": Plot(stream_timeline, stream_timeline_table),
    "login_bands": Plot(login_bands, login_bands_table),
    "delivery_volume": Plot(delivery_volume, delivery_volume_table),
    "volume_users": Plot(volume_users, volume_users_table),
}


def plots_of(run: Run) -> dict[str, Plot]:
    """Return the kinds of figures that suit a run."""
    return STREAM_PLOTS if has_streams(run) else PLOTS


def draw_all(run: Run) -> dict[str, Figure]:
    """Return every figure that the run has data for, by name."""
    drawn = {name: plot.draw(run) for name, plot in plots_of(run).items()}
    return {name: figure for name, figure in drawn.items() if figure is not None}


def save_all(run: Run, directory: Path | None = None, *, pdf: bool = False) -> list[Path]:
    """Draw and save every figure of ``run`` as SVG and PNG, each with its table as CSV.

    Parameters
    ----------
    run : Run
        The recording.
    directory : Path, optional
        By default ``<figures>/<run id>/``.
    pdf : bool
        Also write PDF files.

    Returns
    -------
    list of Path
        SVG, PNG and CSV of each figure, in this order; then the flame graphs, which are SVG only.
    """
    target = figures_dir() / run.run_id if directory is None else directory
    paths: list[Path] = []
    for name, figure in draw_all(run).items():
        paths += save(figure, name, run, target, pdf=pdf)
        paths.append(save_table(plots_of(run)[name].table(run), name, target))
    return [*paths, *save_flames(run, target)]
