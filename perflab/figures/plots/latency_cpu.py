"""Latency against CPU over time windows: is the service slow when its processor is busy?"""

from __future__ import annotations

import math
from functools import partial

import pandas as pd

from perflab.analysis.curves.correlation import Correlation, correlate, windows
from perflab.figures.charts import Axis, Plane, Planes, Points
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.recordings import Run

TITLE = "response time against CPU use of each service"
WINDOW_S = 0.1
LATENCY = "p50_ms"
COLUMNS = ["service", "treatment", "cpu_cores", LATENCY, "words"]


def latency_cpu_view(*services: str) -> View:
    """Return the view of the services of a system: one panel for each that was sampled."""

    def suits(run: Run) -> bool:
        sampled = set(run.samples()["service"])
        return not sampled or bool(sampled & set(services))

    return View("latency_cpu", TITLE, partial(_table, services=services), CHART.draw, suits)


def _table(run: Run, services: tuple[str, ...]) -> pd.DataFrame:
    """Return the windows: service, treatment, CPU (1.0 = a core), median response time in ms.

    First of each service a row with the ``words`` that say how the two go together.
    """
    samples = run.samples()
    sampled = [name for name in services if name in set(samples["service"])]
    wanted = ["treatment", "trial_id", "start_ns", LATENCY, *(f"cpu_{name}" for name in sampled)]
    found = windows(run.requests(), samples, sampled, WINDOW_S)[wanted].dropna()
    if found.empty:
        return pd.DataFrame(columns=COLUMNS)
    parts = [part for service in sampled for part in _of_service(found, service)]
    return pd.concat(parts, ignore_index=True)


def _of_service(found: pd.DataFrame, service: str) -> list[pd.DataFrame]:
    cpu = f"cpu_{service}"
    points = found.assign(service=service, words="", cpu_cores=found[cpu])
    said = _in_words(correlate(found, cpu, LATENCY))
    head = {"service": service, "treatment": "", "cpu_cores": math.nan, LATENCY: math.nan}
    return [pd.DataFrame([{**head, "words": said}]), points[COLUMNS]]


def _planes(table: pd.DataFrame, _: Page) -> dict[str, Plane]:
    y = Axis("median response time, ms (log)", log=True)
    said = table[table["words"] != ""].set_index("service")["words"]
    return {
        str(service): Plane(Axis(f"CPU use of {service}, cores", ends=(0, None)), y, words)
        for service, words in said.items()
    }


def _in_words(correlation: Correlation) -> str:
    if not math.isfinite(correlation.rho):
        return "ρ: too few windows"
    known = math.isfinite(correlation.low)
    interval = f"[{correlation.low:.2f}, {correlation.high:.2f}]" if known else "(no interval)"
    trials = f"{correlation.n} trial{'s' if correlation.n != 1 else ''}"
    words = f"ρ = {correlation.rho:.2f} {interval}\nn = {trials}, {correlation.windows:,} windows"
    return words.replace("-", "\N{MINUS SIGN}")


CHART = Planes(
    TITLE,
    f"Every point is a window of {WINDOW_S:g} s in a valid trial. ρ: Spearman's rank correlation of"
    " the windows within a trial, averaged over the trials that have enough of them, with its 95%"
    " interval.",
    layers=(Points((), "treatment", how={"s": 11.5, "alpha": 0.75}),),
    planes=_planes,
    panel="service",
    x="cpu_cores",
    y=LATENCY,
    across=4,
    height_in=3.4,
    further_in=3.4,
    share_y=True,
)
