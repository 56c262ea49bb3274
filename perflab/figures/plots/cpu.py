"""CPU figures: the cost of an answer, functions of a profile, and CPU against response time."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import pandas as pd

from perflab.analysis.core_accounts import (
    ALL_SERVICES,
    AVAILABLE,
    ON_CORE,
    WAITING,
    CoreAccount,
    core_time,
    has_accounts,
)
from perflab.analysis.profiles import function_shares, profiled
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Bars, Marks, Plane, Planes, Points, RowChart, Stack
from perflab.figures.origin import Page
from perflab.figures.theme import INK, PALETTE, in_order, looks_of
from perflab.figures.view import ARROW, View
from perflab.recordings import Run
from perflab.statistics.correlation import Correlation, correlate, windows
from perflab.statistics.in_words import counted

CORE_TITLE = "what an answer costs the cores, and how long threads waited for one"
BAR = 0.3
APART = 0.17
CAPACITY = "capacity"


def draw_core_time(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw two bars per treatment: time on a core, and time waiting for one, by service."""
    services = [name for name in dict.fromkeys(table["service"]) if name != ALL_SERVICES]
    colors = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(services)}
    bars: dict[str, Any] = {"by": "service", "height": BAR}
    chart = RowChart(
        CORE_TITLE,
        "The scheduler's accounts of each service, per answer, mean over valid trials (95% t"
        " interval). Upper bar: on a core. Lower, pale: ready to run, waiting for a core, summed"
        " over threads; an event loop's wait counts once, though it holds up all its requests."
        " Neither is a part of the response time.",
        layers=(
            Stack(colors, of=(ON_CORE,), at=-APART, **bars),
            Stack(colors, of=(WAITING,), at=APART, alpha=0.45, keyed=False, **bars),
            Marks((CAPACITY,), "|", "the cores' time between two answers", color=INK,
                  size=13, at=-APART),
        ),
        panels={"": Axis("ms per answer, summed over threads", below=0.0)},
        value="mean_ms",
        row_in=0.62,
        said=_words_beside,
        nothing="no account",
    )  # fmt: skip
    whole = (table["service"] == ALL_SERVICES) & (table["what"] == AVAILABLE)
    return chart.draw(table.assign(what=table["what"].where(~whole, CAPACITY)), page)


def _words_beside(table: pd.DataFrame) -> dict[Hashable, str]:
    groups = table.groupby("treatment", sort=False)
    accounts = {str(name): CoreAccount(rows) for name, rows in groups}
    return {name: _words(account) for name, account in accounts.items() if account.services}


def _words(account: CoreAccount) -> str:
    whole = account.whole()
    busy = account.busy()
    used = f"{busy:.0%} of their cores, " if math.isfinite(busy) else ""
    least = "at least " if account.partly_seen() else ""
    return (
        f"on a core {account.text(whole, ON_CORE)} ms\n"
        f"waiting {least}{account.text(whole, WAITING)} ms\n"
        f"{used}n = {int(account.value(whole, WAITING, 'trials'))}"
    )


CORE_TIME = View(
    "core_time", CORE_TITLE, lambda run: in_order(core_time(run), looks_of(run.record)),
    draw_core_time, suits=has_accounts,
)  # fmt: skip


PROFILE_TITLE = "where the time goes, by function"
SHOWN = 10
BAR_IN = 0.17
# The axis ends at this many times the largest share, to leave room for numbers.
BEYOND = 1.35


def draw_profile(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw the functions that take the most time, the largest on top."""
    trials = table.groupby("treatment")["trials"].first()
    looks = {name: look for name, look in page.looks.items() if name in trials}
    longest = float(table["percent"].max())
    bars = Bars(
        {name: look.color for name, look in looks.items()},
        "{:.1f}".format,
        by="treatment",
        labels={name: f"{look.label}, n = {trials[name]}" for name, look in looks.items()},
        within=(0.0, BEYOND * longest),
    )
    chart = RowChart(
        PROFILE_TITLE,
        "Share of the profiler's looks that found a thread inside the function itself, not in one"
        " that it called; mean over valid trials with its 95% interval. The functions with the"
        f" largest shares are shown. {ARROW}",
        layers=(bars,),
        panels={"": Axis("% of the time", below=0.0, above=BEYOND)},
        row="function",
        value="percent",
        labels=lambda rows, _: {name: name for name in rows["function"].unique()},
        row_in=BAR_IN * len(looks) + 0.1,
    )
    return chart.draw(table, page)


PROFILE = View(
    "profile", PROFILE_TITLE, lambda run: function_shares(run, SHOWN), draw_profile,
    suits=lambda run: bool(profiled(run)),
)  # fmt: skip


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
    " interval."
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
    known = math.isfinite(correlation.low)
    interval = f"[{correlation.low:.2f}, {correlation.high:.2f}]" if known else "(no interval)"
    n = f"n = {counted(correlation.n, 'trial')}, {correlation.windows:,} windows"
    return f"ρ = {correlation.rho:.2f} {interval}\n{n}".replace("-", "\N{MINUS SIGN}")


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
