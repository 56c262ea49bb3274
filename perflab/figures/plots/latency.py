"""Response time: against CPU use over windows of time, and its distribution by treatment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Lines, Plane, Planes, Points
from perflab.figures.charts.planes import EVERYWHERE
from perflab.figures.origin import Page
from perflab.figures.theme import FAINT, Look
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.statistics.correlation import Correlation, correlate, windows
from perflab.statistics.quantiles import CENSORED, smallest_n

TITLE = "response time against CPU use of each service"
WINDOW_S = 0.1
LATENCY = "p50_ms"
COLUMNS = ["service", "treatment", "cpu_cores", LATENCY, "words"]


def latency_cpu_view(*services: str) -> View:
    """Return the view of the services of a system, with a panel for each sampled service."""

    def suits(run: Run) -> bool:
        sampled = set(run.samples()["service"])
        return not sampled or bool(sampled & set(services))

    return View("latency_cpu", TITLE, partial(_table, services=services), CHART.draw, suits)


def _table(run: Run, services: tuple[str, ...]) -> pd.DataFrame:
    """Return the windows: service, treatment, CPU (1.0 = a core), median response time in ms.

    The first row of each service has the correlation in ``words``.
    """
    samples = run.samples()
    sampled = [name for name in services if name in set(samples["service"])]
    columns = ["treatment", "trial_id", "start_ns", LATENCY, *(f"cpu_{name}" for name in sampled)]
    table = windows(run.requests(), samples, sampled, WINDOW_S)[columns].dropna()
    if table.empty:
        return pd.DataFrame(columns=COLUMNS)
    parts = [part for service in sampled for part in _of_service(table, service)]
    return pd.concat(parts, ignore_index=True)


def _of_service(table: pd.DataFrame, service: str) -> list[pd.DataFrame]:
    cpu = f"cpu_{service}"
    points = table.assign(service=service, words="", cpu_cores=table[cpu])
    words = _correlation_words(correlate(table, cpu, LATENCY))
    head = {"service": service, "treatment": "", "cpu_cores": math.nan, LATENCY: math.nan}
    return [pd.DataFrame([{**head, "words": words}]), points[COLUMNS]]


def _planes(table: pd.DataFrame, _: Page) -> dict[str, Plane]:
    y = Axis("median response time, ms (log)", log=True)
    words_of = table[table["words"] != ""].set_index("service")["words"]
    return {
        str(service): Plane(Axis(f"CPU use of {service}, cores", ends=(0, None)), y, words)
        for service, words in words_of.items()
    }


def _correlation_words(correlation: Correlation) -> str:
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


# The curves of more treatments hide each other: then each has a panel, with the others in grey.
SHARED_PANEL = 3
ECDF_TITLE = "response time, share of responses done within a time"
# Denser in the tails.
SHARES = np.r_[0.0, 0.002, 0.005, np.linspace(0.01, 0.99, 99), 0.995, 0.998, 1.0]
MARKED = {0.50: "p50_ms", 0.95: "p95_ms", 0.99: "p99_ms"}
THIN, ALONE, THICK, OTHER = "thin", "alone", "thick", "other"
# A line style for each treatment of a shared panel: colours look alike in greyscale.
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1.5, 1)))
SHARES_MARKED = {25.0 * n: str(25 * n) for n in range(5)}
POOLED, MARKS = "all trials", "median of trials"
ECDF_COLUMNS = ["treatment", "curve", "share_done", "response_ms"]


def latency_ecdf_table(run: Run) -> pd.DataFrame:
    """Return the time by which each share of the requests of valid trials was done.

    The requests are the successes and those that were cut off before their end; the share of the
    latter is missing at the top of a curve. ``curve`` is a trial, all trials of a treatment
    together (if there are several), or the median of the trials' p50, p95 and p99 if every trial
    has enough responses for it. Each time in a curve is that of a response, not an estimate of a
    percentile.
    """
    responses = _responses(run)
    parts = [
        _curve(str(name), curve, values)
        for name, rows in responses.groupby("treatment", sort=False)
        for curve, values in _curves(rows)
    ]
    if not parts:
        return pd.DataFrame(columns=ECDF_COLUMNS)
    return pd.concat([*parts, _marks(run, list(responses["treatment"].unique()))])[ECDF_COLUMNS]


def _responses(run: Run) -> pd.DataFrame:
    """Return treatment, trial_id and response_ms, which is infinite for requests cut off."""
    requests = run.requests()
    cut = requests["error"].isin(CENSORED)
    ended = requests[((requests["error"] == "") | cut) & (requests["done_ns"] > 0)]
    waited_ms = (ended["done_ns"] - ended["planned_ns"]).astype(float) / 1e6
    return ended.assign(response_ms=waited_ms.mask(ended["error"] != "", np.inf))


def _curves(responses: pd.DataFrame) -> Iterator[tuple[str, pd.Series[float]]]:
    trials = responses.groupby("trial_id", sort=False)["response_ms"]
    yield from ((str(trial), values) for trial, values in trials)
    if trials.ngroups > 1:
        yield POOLED, responses["response_ms"]


def _curve(treatment: str, curve: str, values: pd.Series[float]) -> pd.DataFrame:
    times = np.quantile(values.to_numpy(float), SHARES, method="inverted_cdf")
    columns = {"treatment": treatment, "curve": curve, "share_done": SHARES, "response_ms": times}
    table = pd.DataFrame(columns)
    finite: pd.DataFrame = table[np.isfinite(table["response_ms"])]
    return finite


def _marks(run: Run, treatments: list[str]) -> pd.DataFrame:
    trials = run.valid_trials()
    rows = []
    for name in treatments:
        group = trials[trials["treatment"] == name]
        answered = (group["requests"] - group["errors"]).min()
        rows += [
            {"treatment": name, "curve": MARKS, "share_done": share, "response_ms": ms}
            for share, column in MARKED.items()
            if answered >= smallest_n(share) and np.isfinite(ms := float(group[column].median()))
        ]
    return pd.DataFrame(rows, columns=ECDF_COLUMNS)


def draw_latency_ecdf(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw the share of responses done within a time, by treatment."""
    shared = len(page.looks) <= SHARED_PANEL
    names = page.looks if not shared else {EVERYWHERE: None}
    tables = [_panel_table(table, name, page.looks) for name in names]
    line: dict[str, Any] = {"by": "treatment", "unit": "curve"}
    dashes = dict(zip(page.looks, DASHES, strict=False)) if shared else {}
    chart = Planes(
        ECDF_TITLE,
        "How to read it: at a time on the axis below, a line is as high as the share of responses"
        " that were done by then; a line further left is faster. A thin line is one valid trial, a"
        " thick one all trials of a treatment pooled, where there are several. Points: median of"
        " the trials' p50, p95 and p99, where every trial has responses enough. Response time runs"
        " from the planned instant to the last byte of successes; what was cut off is never done."
        f"{' Grey: the pooled lines of the other treatments.' * (not shared)}",
        layers=(
            Lines((OTHER,), **{**line, "by": "", "unit": "treatment"}, color=FAINT,
                  how={"lw": 1.0}),
            Lines((ALONE,), how={"lw": 1.0, "gid": "trial"}, keyed=shared, **line),
            Lines((THIN,), how={"lw": 0.5, "alpha": 0.45, "gid": "trial"}, keyed=False, **line),
            *(
                Lines((THICK,), looks={name: look}, keyed=shared, **line,
                      how={"lw": 2.0, "ls": dashes.get(name, "-"), "gid": "pooled"})
                for name, look in page.looks.items()
            ),
            Points((MARKS,), by="treatment", keyed=False,
                   how={"s": 30, "linewidth": 0.8, "zorder": 5}),
        ),
        planes=_ecdf_planes,
        panel="panel",
        height_in=3.7 if shared else 2.6,
        further_in=2.0,
        share_x=True,
        share_y=True,
        x="response_ms",
        y="percent",
    )  # fmt: skip
    return chart.draw(pd.concat(tables, ignore_index=True), page)


def _panel_table(table: pd.DataFrame, panel: str, looks: Mapping[str, Look]) -> pd.DataFrame:
    """Return the rows of one panel: its treatment's curves, and in grey those of the others."""
    whole, marks = _is_whole(table), table["curve"] == MARKS
    pooled = table["curve"] == POOLED
    what = np.select([marks, pooled, whole], [MARKS, THICK, ALONE], THIN)
    in_panel = table["treatment"].isin([panel] if panel else [*looks])
    shown = table.assign(what=np.where(in_panel, what, OTHER), percent=100 * table["share_done"])
    return shown[in_panel | whole].assign(panel=panel) if in_panel.any() else shown.iloc[:0]


def _is_whole(table: pd.DataFrame) -> pd.Series[bool]:
    """Return whether each row is of a treatment's main line: the pooled one, or its only trial."""
    pooled = set(table.loc[table["curve"] == POOLED, "treatment"])
    alone = ~table["treatment"].isin(pooled) & (table["curve"] != MARKS)
    return alone | (table["curve"] == POOLED)


def _ecdf_planes(_: pd.DataFrame, page: Page) -> dict[str, Plane]:
    x = Axis("response time, ms (log)", log=True)
    y = Axis("responses done, %", ends=(-2, 103), ticks=SHARES_MARKED)
    if len(page.looks) <= SHARED_PANEL:
        return {EVERYWHERE: Plane(x, y)}
    return {name: Plane(x, y, look.label) for name, look in page.looks.items()}


LATENCY_ECDF = View("latency_ecdf", ECDF_TITLE, latency_ecdf_table, draw_latency_ecdf)
