"""What an answer costs the cores: time that services' threads ran, and waited for a core."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import pandas as pd

from perflab.analysis.trials.core_accounts import (
    AVAILABLE,
    EVERY,
    ON_CORE,
    WAITING,
    CoreAccount,
    core_time,
    has_accounts,
)
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Marks, RowChart, Stack
from perflab.figures.looks import PALETTE, in_order, looks_of
from perflab.figures.page import Page
from perflab.figures.theme import INK
from perflab.figures.view import View
from perflab.recordings import Run

TITLE = "what an answer costs the cores, and how long threads waited for one"
BAR = 0.3
APART = 0.17
CAPACITY = "capacity"


def core_time_table(run: Run) -> pd.DataFrame:
    """Return what an answer costs the cores, in the order of the record."""
    return in_order(core_time(run), looks_of(run.record))


def draw_core_time(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw two bars per treatment: time on a core, and time waiting for one, by service."""
    services = [name for name in dict.fromkeys(table["service"]) if name != EVERY]
    colors = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(services)}
    how: dict[str, Any] = {"by": "service", "height": BAR}
    chart = RowChart(
        TITLE,
        "The scheduler's accounts of each service, per answer, mean over valid trials (95% t"
        " interval). Upper bar: on a core. Lower, pale: ready to run, waiting for a core, summed"
        " over threads; an event loop's wait counts once, though it holds up all its requests."
        " Neither is a part of the response time.",
        layers=(
            Stack(colors, of=(ON_CORE,), at=-APART, **how),
            Stack(colors, of=(WAITING,), at=APART, alpha=0.45, keyed=False, **how),
            Marks((CAPACITY,), "|", "the cores' time between two answers", color=INK,
                  size=13, at=-APART),
        ),
        panels={"": Axis("ms per answer, summed over threads", below=0.0)},
        value="mean_ms",
        row_in=0.62,
        said=_said,
        nothing="no account",
    )  # fmt: skip
    whole = (table["service"] == EVERY) & (table["what"] == AVAILABLE)
    return chart.draw(table.assign(what=table["what"].where(~whole, CAPACITY)), page)


def _said(table: pd.DataFrame) -> dict[Hashable, str]:
    accounts = {name: CoreAccount.of(table, str(name)) for name in table["treatment"].unique()}
    return {name: _words(each) for name, each in accounts.items() if each.services}


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


CORE_TIME = View("core_time", TITLE, core_time_table, draw_core_time, suits=has_accounts)
