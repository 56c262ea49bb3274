"""What an answer costs the cores."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import pandas as pd

from perflab.analysis.accounts.core_accounts import (
    ALL_SERVICES,
    AVAILABLE,
    ON_CORE,
    WAITING,
    CoreAccount,
    core_time,
    has_accounts,
)
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Marks, RowChart, Stack
from perflab.figures.origin import Page
from perflab.figures.theme import INK, PALETTE, in_order, styles_of
from perflab.figures.view import View

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
    "core_time", CORE_TITLE, lambda run: in_order(core_time(run), styles_of(run.record)),
    draw_core_time, suits=has_accounts,
)  # fmt: skip
