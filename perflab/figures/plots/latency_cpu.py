"""Latency against CPU: response time over windows against the CPU of each service."""

from __future__ import annotations

import math

import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Plane, Planes, Points
from perflab.figures.origin import Page
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.statistics.correlation import Correlation, correlate, windows
from perflab.statistics.in_words import counted

CORRELATION_TITLE = "response time against CPU use of each service"
WINDOW_S = 0.1
LATENCY = "p50_ms"
WINDOW_COLUMNS = ["service", "treatment", "cpu_cores", LATENCY, "words"]
# Sampled processes that no treatment is about.
HELPERS = frozenset({"client", "lab", "link"})
CORE = "core "
# The panel of services that only one treatment has, such as variants.
OF_ITS_OWN = "the service"
BY_WINDOW = (
    f"Every point is a window of {WINDOW_S:g} s in a valid trial. ρ: Spearman's rank correlation of"
    " the windows within a trial, averaged over the trials that have enough of them, with its 95%"
    " interval; without trends: of what a cubic of time leaves of both in each trial."
)
# Windows of a fixed length would hold slices of several treatments.
BY_TRIAL = "Every point is a valid trial; CPU is of the time in which its treatment had its turn."


def _services(run: Run) -> dict[str, str]:
    """Return the sampled services, each with its panel: services of one treatment share theirs."""
    samples = run.table("samples")[["trial_id", "service"]].drop_duplicates()
    cores = samples["service"].str.startswith(CORE)
    samples = samples[~(samples["service"].isin(HELPERS) | cores)]
    treatments = run.trials().set_index("trial_id")["treatment"]
    users = samples["trial_id"].map(treatments).groupby(samples["service"], sort=False).nunique()
    is_alone = (users == 1) & (len(users) > 1)
    return {str(name): OF_ITS_OWN if alone else str(name) for name, alone in is_alone.items()}


def latency_cpu_table(run: Run) -> pd.DataFrame:
    """Return the points: service, treatment, CPU (1.0 = a core), median response time in ms.

    A point is a window of a trial, or a trial where treatments take turns. The first row of each
    service has the words of its panel.
    """
    services, by_trial = _services(run), run.record.shares_time
    if by_trial:
        source, prefix = run.valid_trials(), "cpu_share_"
    else:
        requests, samples = run.requests(), run.table("samples")
        source, prefix = windows(requests, samples, [*services], WINDOW_S), "cpu_"
    panels: dict[str, list[pd.DataFrame]] = {}
    for service, panel in services.items():
        points = source.assign(service=panel, words="", cpu_cores=source[f"{prefix}{service}"])
        panels.setdefault(panel, []).append(points.dropna(subset=["cpu_cores", LATENCY]))
    parts = []
    for panel, of_panel in panels.items():
        points = pd.concat(of_panel, ignore_index=True)
        words = f"n = {counted(len(points), 'trial')}"
        if not by_trial:
            words = _correlation_words(correlate(points, "cpu_cores", LATENCY))
        head = {"service": panel, "treatment": "", "cpu_cores": math.nan, LATENCY: math.nan}
        if len(points):
            parts += [pd.DataFrame([{**head, "words": words}]), points[WINDOW_COLUMNS]]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=WINDOW_COLUMNS)


def _service_planes(table: pd.DataFrame, _: Page) -> dict[str, Plane]:
    y = Axis("median response time, ms (log)", log=True)
    words_of = table[table["words"] != ""].set_index("service")["words"]
    return {
        str(service): Plane(Axis(f"CPU use of {service}, cores", below=0.0, above=1.05), y, words)
        for service, words in words_of.items()
    }


def _correlation_words(correlation: Correlation) -> str:
    if not math.isfinite(correlation.rho):
        return "ρ: too few windows"
    whole = _with_interval(correlation.rho, correlation.low, correlation.high)
    lines = (
        f"ρ = {whole}",
        f"without trends {_with_interval(*correlation.apart)}",
        f"n = {counted(correlation.n, 'trial')}, {correlation.windows:,} windows",
    )
    return "\n".join(lines).replace("-", "\N{MINUS SIGN}")


def _with_interval(rho: float, low: float, high: float) -> str:
    return f"{rho:.2f} " + (f"[{low:.2f}, {high:.2f}]" if math.isfinite(low) else "(no interval)")


def draw_latency_cpu(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel for each service."""
    is_by_window = table["words"].str.startswith("ρ").any()
    chart = Planes(
        CORRELATION_TITLE,
        BY_WINDOW if is_by_window else BY_TRIAL,
        layers=(Points((), "treatment", how={"s": 11.5 if is_by_window else 30, "alpha": 0.75}),),
        planes=_service_planes,
        panel="service",
        x="cpu_cores",
        y=LATENCY,
        across=4,
        height_in=3.4,
        further_in=3.4,
        share_y=True,
    )
    return chart.draw(table, page)


LATENCY_CPU = View(
    "latency_cpu", CORRELATION_TITLE, latency_cpu_table, draw_latency_cpu,
    suits=lambda run: run.table("samples").empty or bool(_services(run)),
)  # fmt: skip
