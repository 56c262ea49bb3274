"""Latency against the number of users, configuration by configuration, with the study's targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas, panels
from perflab.figures.evidence import trials_shown
from perflab.figures.intervals import draw_interval, reach
from perflab.figures.looks import Look, appearance
from perflab.figures.nothing import empty_figure
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.points import draw_points
from perflab.figures.theme import MUTED
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.analysis.held import held_sentences, targets_ms
from perflab.systems.chat.analysis.held import users_held as held_rungs

TITLE = "users held within the targets"
# An interval may reach so many times beyond the trials.
BEYOND = 3.0
SAID, TRIAL, TYPICAL, TARGET = "said", "trial", "typical value", "target"
COLUMNS = ["what", "configuration", "users", "percentile", "state", "ms", "low", "high", "words"]
RUNGS = ["configuration", "users", "treatment"]


def users_held_table(run: Run) -> pd.DataFrame:
    """Return percentiles of deliveries by configuration and users, and the study's targets.

    ``what`` is a trial that did not fail (with its state), a typical value of several (with its
    95% interval), a target, or what is ``said`` of a configuration in ``words``.
    """
    found = _of_several(held_rungs(run))
    if found.empty:
        return pd.DataFrame(columns=COLUMNS)
    names = found["configuration"].drop_duplicates()
    said = pd.DataFrame({"what": SAID, "configuration": names, "words": held_sentences(found)})
    trials = _trials(run, found)
    parts = [
        part.assign(percentile=response.removeprefix("delivery_").removesuffix("_ms"))
        for response, most_ms in targets_ms().items()
        for part in (
            trials.assign(what=TRIAL, ms=trials[response].astype(float)),
            _typical(found, response),
            pd.DataFrame([{"what": TARGET, "ms": most_ms}]),
        )
    ]
    return pd.concat([said, *parts], ignore_index=True).reindex(columns=COLUMNS)


def _of_several(found: pd.DataFrame) -> pd.DataFrame:
    """Return the configurations that were tried with several numbers of users."""
    return found[found.groupby("configuration")["users"].transform("nunique") > 1]


def _trials(run: Run, found: pd.DataFrame) -> pd.DataFrame:
    labels = {item.name: item.label or item.name for item in run.record.treatments}
    trials = trials_shown(run)
    shown = trials.assign(treatment=trials["treatment"].map(labels)).reindex(
        columns=["treatment", "state", *targets_ms()]
    )
    return shown.merge(found[RUNGS], on="treatment")


def _typical(found: pd.DataFrame, response: str) -> pd.DataFrame:
    several = found[found[f"{response}_n"] > 1]
    numbers = {"ms": response, "low": f"{response}_low", "high": f"{response}_high"}
    values = {name: several[column].astype(float) for name, column in numbers.items()}
    return several[["configuration", "users"]].assign(what=TYPICAL, **values)


def varies_users(run: Run) -> bool:
    """Return whether a configuration of the run was tried with several numbers of users."""
    return {"rung", "users"} <= set(run.record.factors) and len(_of_several(held_rungs(run))) > 0


def draw_users_held(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw three percentiles against users."""
    said = ". ".join(words[:1].upper() + words[1:] for words in table["words"] if words)
    if not table.loc[table["what"] == TRIAL, "ms"].notna().any():
        return empty_figure(page, TITLE, f"{said}. {page.nothing}")
    looks = dict(_looks(table))
    shares = table[table["percentile"] != ""].groupby("percentile")
    grid = page.sheet.grid(shares.ngroups, across=shares.ngroups, least_in=1.8)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=page.sheet.height_in(3.2 + 2.6 * (grid.down - 1)),
        subtitle=f"{said}. Small points: trials (hollow: refused); lines: typical values, where"
        " there are several, with 95% intervals where n allows them (an arrow: it goes on).",
        key=_key(looks),
    )
    drawn = panels(figure, grid, sharey=True)
    for axes, (share, own) in zip(drawn, shares, strict=True):
        _draw(axes, own, looks)
        axes.set_xlabel("users")
        axes.set_title(str(share), fontsize=9)
        log_axis(axes, "y")
        only_grid(axes, "y")
    for axes in drawn[:: grid.across]:
        axes.set_ylabel("latency of deliveries, ms (log)")
    return finish(figure)


def _looks(table: pd.DataFrame) -> Iterator[tuple[str, Look]]:
    for place, name in enumerate(table.loc[table["what"] == SAID, "configuration"]):
        yield name, Look(*appearance(place), label=name.replace("_", " "))


def _draw(axes: Axes, own: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    trials, typical = own[own["what"] == TRIAL], own[own["what"] == TYPICAL]
    draw_points(axes, trials, "users", "ms", "configuration", looks, s=9, alpha=0.8, zorder=2)
    colors = {name: look.color for name, look in looks.items()}
    if len(typical):
        sns.lineplot(
            typical, x="users", y="ms", hue="configuration", style="configuration", palette=colors,
            hue_order=[*looks], style_order=[*looks], dashes=False, estimator=None, legend=False,
            markers={name: look.marker for name, look in looks.items()}, ms=4.5, mew=0, lw=1.4,
            ax=axes,
        )  # fmt: skip
    known = typical[typical["low"].notna()]
    within = reach(trials["ms"], BEYOND)
    for each in known.to_dict("records"):
        draw_interval(axes, (each["low"], each["high"]), each["users"], within, "y", lw=1.1,
                      zorder=2.5, color=colors[each["configuration"]])  # fmt: skip
    for most_ms in own.loc[own["what"] == TARGET, "ms"]:
        axes.axhline(most_ms, color=MUTED, lw=1.0, ls=(0, (4, 2)), zorder=1)
    axes.set_ylabel("")


def _key(looks: Mapping[str, Look]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=look.color, marker=look.marker, ms=4.5, lw=1.4, label=look.label)
        for look in looks.values()
    ]
    return [*handles, Line2D([], [], color=MUTED, lw=1.0, ls=(0, (4, 2)), label=TARGET)]


USERS_HELD = View("users_held", TITLE, users_held_table, draw_users_held, suits=varies_users)
