"""Latency against CPU over time windows: is the service slow when its processor is busy?"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.curves.correlation import Correlation
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas, panels
from perflab.figures.evidence import LATENCY, WINDOW_S, cpu_windows, latency_and_cpu
from perflab.figures.looks import Look
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.points import draw_points
from perflab.figures.view import View
from perflab.figures.words import tick_label
from perflab.recordings import Run

TITLE = "response time against CPU use of each service"
COLUMNS = ["service", "treatment", "cpu_cores", "p50_ms", "words"]


def latency_cpu_view(*services: str) -> View:
    """Return the view of the services of a system: one panel for each that was sampled."""

    def table(run: Run) -> pd.DataFrame:
        return _table(run, services)

    def suits(run: Run) -> bool:
        sampled = set(run.samples()["service"])
        return not sampled or bool(sampled & set(services))

    return View("latency_cpu", TITLE, table, draw_latency_cpu, suits)


def _table(run: Run, services: tuple[str, ...]) -> pd.DataFrame:
    """Return the windows: service, treatment, CPU (1.0 = a core), median response time in ms.

    First of each service a row with the ``words`` that say how the two go together.
    """
    windows = cpu_windows(run, services)
    sampled = [name for name in services if f"cpu_{name}" in windows]
    if windows.empty:
        return pd.DataFrame(columns=COLUMNS)
    parts = [part for service in sampled for part in _of_service(windows, service)]
    return pd.concat(parts, ignore_index=True)


def _of_service(windows: pd.DataFrame, service: str) -> list[pd.DataFrame]:
    points = windows.assign(service=service, words="", cpu_cores=windows[f"cpu_{service}"])
    said = _in_words(latency_and_cpu(windows, service))
    head = {"service": service, "treatment": "", "cpu_cores": math.nan, LATENCY: math.nan}
    return [pd.DataFrame([{**head, "words": said}]), points[COLUMNS]]


def draw_latency_cpu(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw response time against CPU per time window, one panel per service."""
    services = list(table["service"].unique())
    grid = page.sheet.grid(len(services), across=len(services), least_in=1.7)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=page.sheet.height_in(3.4) * grid.down,
        subtitle=f"Every point is a window of {WINDOW_S:g} s in a valid trial. ρ: Spearman's rank"
        " correlation of the windows within a trial, averaged over the trials that have enough of"
        " them, with its 95% interval.",
        key=_key(page.looks, set(table["treatment"])),
    )
    shown = panels(figure, grid, sharey=True)
    for axes, service in zip(shown, services, strict=True):
        _draw_panel(axes, table[table["service"] == service], page.looks)
        axes.set_xlabel(f"CPU use of {service}, cores")
    for axes in shown[:: grid.across]:
        axes.set_ylabel("median response time, ms (log)")
    return finish(figure)


def _draw_panel(axes: Axes, own: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    draw_points(axes, own[own["treatment"] != ""], "cpu_cores", LATENCY, "treatment", looks, s=11.5,
                alpha=0.75)  # fmt: skip
    axes.set_title("".join(own["words"]), size=8.5)
    log_axis(axes, "y")
    axes.set_xlim(left=0)
    only_grid(axes, "y")


def _in_words(correlation: Correlation) -> str:
    if not math.isfinite(correlation.rho):
        return "ρ: too few windows"
    known = math.isfinite(correlation.low)
    interval = f"[{correlation.low:.2f}, {correlation.high:.2f}]" if known else "(no interval)"
    trials = f"{correlation.n} trial{'s' if correlation.n != 1 else ''}"
    words = f"ρ = {correlation.rho:.2f} {interval}\nn = {trials}, {correlation.windows:,} windows"
    return words.replace("-", "\N{MINUS SIGN}")


def _key(looks: Mapping[str, Look], shown: set[str]) -> list[Line2D]:
    return [
        Line2D([], [], ls="", marker=each.marker, ms=4.5, mfc=each.color, mec="white", mew=0.3,
               label=tick_label(each.label, 6.4, 8, lines=1))
        for name, each in looks.items()
        if name in shown
    ]  # fmt: skip
