"""CPU figures: what an answer costs the cores, and the functions of a profiled service."""

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
from perflab.figures.charts import Axis, Bars, Marks, RowChart, Stack
from perflab.figures.origin import Page
from perflab.figures.theme import INK, PALETTE, in_order, looks_of
from perflab.figures.view import ARROW, View
from perflab.recordings import Run

CORE_TITLE = "what an answer costs the cores, and how long threads waited for one"
BAR = 0.3
APART = 0.17
CAPACITY = "capacity"


def core_time_table(run: Run) -> pd.DataFrame:
    """Return what an answer costs the cores, in the order of the record."""
    return in_order(core_time(run), looks_of(run.record))


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
    accounts = {name: CoreAccount.of(table, str(name)) for name in table["treatment"].unique()}
    return {name: _words(account) for name, account in accounts.items() if account.services}


def _words(account: CoreAccount) -> str:
    whole = account.whole()
    busy = account.busy()
    used = f"{busy:.0%} of their cores, " if math.isfinite(busy) else ""
    lines = (
        f"on a core {_ms(account, whole, ON_CORE)}",
        f"waiting {'at least ' if account.partly_seen() else ''}{_ms(account, whole, WAITING)}",
        f"{used}n = {int(account.value(whole, WAITING, 'trials'))}",
    )
    return "\n".join(lines)


def _ms(account: CoreAccount, service: str, what: str) -> str:
    names = ("mean_ms", "low_ms", "high_ms")
    mean, low, high = (account.value(service, what, name) for name in names)
    interval = f" [{_short(low)}, {_short(high)}]" if math.isfinite(low) else ""
    return f"{_short(mean)}{interval} ms"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 99.5 else f"{value:.{1 if abs(value) >= 9.95 else 2}f}"


CORE_TIME = View("core_time", CORE_TITLE, core_time_table, draw_core_time, suits=has_accounts)


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


def profile_table(run: Run) -> pd.DataFrame:
    """Return the functions that take the most time, in percent, by treatment (long form)."""
    return function_shares(run, SHOWN)


PROFILE = View(
    "profile", PROFILE_TITLE, profile_table, draw_profile, suits=lambda run: bool(profiled(run))
)
