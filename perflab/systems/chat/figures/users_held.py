"""Latency against the number of users, configuration by configuration, with the study's targets."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.looks import appearance
from perflab.figures.nothing import empty_figure, why
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import MUTED, styled
from perflab.recordings import Run
from perflab.systems.chat.analysis.users_held import held_sentences, targets_ms
from perflab.systems.chat.analysis.users_held import users_held as held_table

TITLE = "users held within the targets"


def table(run: Run) -> pd.DataFrame:
    """Return one row per rung; see :func:`perflab.systems.chat.analysis.users_held.users_held`."""
    return held_table(run)


@styled
def users_held(run: Run) -> Figure | None:
    """Draw three percentiles against users; None where no configuration has two numbers of them."""
    if not {"rung", "users"} <= set(run.record.factors):
        return None
    found = held_table(run)
    several = found.groupby("configuration")["users"].transform("nunique") > 1
    found = found[several]
    if found.empty:
        return None
    names = list(dict.fromkeys(found["configuration"]))
    said = ". ".join(_upper(each) for each in held_sentences(found))
    if not found[list(targets_ms())].notna().any(axis=None):
        return empty_figure(run, TITLE, f"{said}. {why(run)}")
    figure = canvas_of(
        run,
        TITLE,
        plot_height_in=3.2,
        subtitle=f"{said}. Small points: trials (hollow: refused); lines: typical values, where"
        " there are several, with 95% intervals where n allows them.",
        key=_key(names),
    )
    panels = figure.subplots(1, len(targets_ms()), sharey=True)
    for axes, (response, most_ms) in zip(panels, targets_ms().items(), strict=True):
        _draw(axes, run, found, names, response)
        axes.axhline(most_ms, color=MUTED, lw=1.0, ls=(0, (4, 2)), zorder=1)
        axes.set_xlabel("users")
        axes.set_title(response.removeprefix("delivery_").removesuffix("_ms"), fontsize=9)
        log_axis(axes, "y")
        only_grid(axes, "y")
    panels[0].set_ylabel("latency of deliveries, ms (log)")
    return finish(figure)


def _draw(axes: Axes, run: Run, found: pd.DataFrame, names: list[str], response: str) -> None:
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool) & (trials["state"] != "failed")]
    labels = {item.name: item.label or item.name for item in run.record.treatments}
    shown = trials.assign(label=trials["treatment"].map(labels))
    for place, name in enumerate(names):
        color, marker = appearance(place)
        own = found[found["configuration"] == name]
        typical = own[own[f"{response}_n"] > 1]
        axes.plot(typical["users"], typical[response], color=color, marker=marker, ms=4.5, lw=1.4,
                  zorder=3)  # fmt: skip
        low, high = f"{response}_low", f"{response}_high"
        known = own[own[low].notna()]
        axes.vlines(known["users"], known[low], known[high], color=color, lw=1.1, zorder=2.5)
        users = dict(zip(own["treatment"], own["users"], strict=True))
        points = shown[shown["label"].isin(users)]
        valid = points["state"] == "valid"
        for chosen, face in ((valid, color), (~valid, "white")):
            axes.scatter(points.loc[chosen, "label"].map(users), points.loc[chosen, response], s=9,
                         c=face, edgecolors=color, linewidths=0.7, alpha=0.8, zorder=2)  # fmt: skip


def _upper(words: str) -> str:
    return words[:1].upper() + words[1:]


def _key(names: list[str]) -> list[Line2D]:
    handles = []
    for place, name in enumerate(names):
        color, marker = appearance(place)
        words = name.replace("_", " ")
        handles.append(Line2D([], [], color=color, marker=marker, ms=4.5, lw=1.4, label=words))
    return [*handles, Line2D([], [], color=MUTED, lw=1.0, ls=(0, (4, 2)), label="target")]
