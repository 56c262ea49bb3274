"""What an answer costs the cores: time that services' threads ran, and waited for a core."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perflab.analysis.trials.core_accounts import (
    AVAILABLE,
    EVERY,
    ON_CORE,
    WAITING,
    CoreAccount,
    core_time,
    has_accounts,
)
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.looks import PALETTE, looks_of
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.theme import INK, MUTED
from perflab.figures.view import View
from perflab.recordings import Run

TITLE = "what an answer costs the cores, and how long threads waited for one"
BAR = 0.3
APART = 0.17
WORDS_IN = 2.15


def core_time_table(run: Run) -> pd.DataFrame:
    """Return what an answer costs the cores, in the order of the record."""
    table = core_time(run)
    order = list(looks_of(run.record))
    place = table["treatment"].map({name: n for n, name in enumerate(order)})
    return table.iloc[place.argsort(kind="stable")].reset_index(drop=True)


def draw_core_time(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw two bars per treatment: time on a core, and time waiting for one, by service."""
    services = [name for name in dict.fromkeys(table["service"]) if name != EVERY]
    colors = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(services)}
    accounts = {name: CoreAccount.of(table, name) for name in page.looks}
    told = {name: each for name, each in accounts.items() if len(each.rows) and each.services}
    said = {name: _words(account) for name, account in told.items()}
    own = rows.of_looks(page.looks, page.sheet, 0.62, said)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + own.height_in,
        subtitle="The scheduler's accounts of each service, per answer, mean over valid trials (95%"
        " t interval). Upper bar: on a core. Lower, pale: ready to run, waiting for a core, summed"
        " over threads; an event loop's wait counts once, though it holds up all its requests."
        " Neither is a part of the response time.",
        key=_key(colors),
    )
    axes = figure.subplots()
    places = own.frame(axes)
    longest, words_in = float(table["mean_ms"].max()), own.room_in(WORDS_IN)
    axes.set_xlim(0, longest * own.plot_in / (own.plot_in - words_in))
    for name, place in places.items():
        account = accounts[name]
        if name not in told:
            axes.text(0.01, place, "no account", transform=axes.get_yaxis_transform(),
                      va="center", color=MUTED)  # fmt: skip
            continue
        _bar(axes, place - APART, account, ON_CORE, colors)
        _bar(axes, place + APART, account, WAITING, colors)
        _available(axes, place, account)
        own.say(axes, name, 1 - (words_in - 0.15) / own.plot_in, place, size=7.5, linespacing=1.3,
                transform=axes.get_yaxis_transform(), zorder=5,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})  # fmt: skip
    axes.set_xlabel("ms per answer, summed over threads")
    only_grid(axes, "x")
    return finish(figure)


def _bar(axes: Axes, y: float, account: CoreAccount, what: str, colors: dict[str, str]) -> None:
    left = 0.0
    for name, color in colors.items():
        value = account.value(name, what)
        if not value > 0:
            continue
        pale = what == WAITING
        axes.barh(y, value, left=left, height=BAR, color=color, alpha=0.45 if pale else 1.0,
                  edgecolor="white", lw=0.6)  # fmt: skip
        left += value


def _available(axes: Axes, place: float, account: CoreAccount) -> None:
    value = account.value(EVERY, AVAILABLE)
    if math.isfinite(value):
        axes.plot([value] * 2, [place - 0.36, place], color=INK, lw=1.6, zorder=4, gid="available")


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
    mean, low, high = (
        account.value(service, what, name) for name in ("mean_ms", "low_ms", "high_ms")
    )
    interval = f" [{_short(low)}, {_short(high)}]" if math.isfinite(low) else ""
    return f"{_short(mean)}{interval} ms"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 99.5 else f"{value:.{1 if abs(value) >= 9.95 else 2}f}"


def _key(colors: dict[str, str]) -> list[Patch | Line2D]:
    capacity = Line2D([], [], ls="", marker="|", ms=9, mew=1.6, color=INK,
                      label="the cores' time between two answers")  # fmt: skip
    return [*(Patch(fc=color, label=name) for name, color in colors.items()), capacity]


CORE_TIME = View("core_time", TITLE, core_time_table, draw_core_time, suits=has_accounts)
