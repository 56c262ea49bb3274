"""The ladder: percentiles of every rung beside the study's targets, of deliveries and of pings.

Published percentiles are of pings: they stand beside pings alone.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Plane, Planes, Points, Published, RowChart, Rules, Typical
from perflab.figures.evidence import trials_shown, typical_rows
from perflab.figures.origin import Page
from perflab.figures.points import OTHER_LOAD, SAME_LOAD
from perflab.figures.theme import PALETTE, Look, looks_of
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.systems.chat.analysis.bursts import bands, stream_windows
from perflab.systems.chat.analysis.codec_costs import is_of_codecs
from perflab.systems.chat.analysis.users_held import targets_ms
from perflab.systems.chat.rungs import COSTLY, FREE, published_of

DELIVERIES, PINGS = "delivery", "all_ping"
TITLES = {
    DELIVERIES: "delivery latency, rung by rung",
    PINGS: "pings, rung by rung, measured and published",
}
OF = {
    DELIVERIES: "All deliveries of a trial; no size was published of them.",
    PINGS: "All pings of a trial, one a second, silent times included. Published are pings of one"
    " run each, from another machine.",
}
BEYOND = 3.0
SHARES = ("p90", "p95", "p99")
TRIAL, TARGET, PUBLISHED = "trial", "target", "published"
COLUMNS = ["percentile", "what", "treatment", "state", "ms", "low", "high"]
LOOKS = {TRIAL: Look(PALETTE[0], "o", TRIAL)}


def ladder_table(run: Run, kind: str = DELIVERIES) -> pd.DataFrame:
    """Return three percentiles of the deliveries (or pings) of each rung, and the study's targets.

    ``what`` is a trial that did not fail (with its state), the statistic of a typical value over
    valid trials (with its 95% interval), a published percentile of pings (``state``: whether the
    rung has the published load), or the target.
    """
    trials = trials_shown(run)
    columns = [f"{kind}_{share}_ms" for share in SHARES]
    if not np.isfinite(trials.reindex(columns=columns).astype(float)).any(axis=None):
        return pd.DataFrame(columns=COLUMNS)
    parts = [part for share in SHARES for part in _of_share(run, trials, kind, share)]
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def pings_table(run: Run) -> pd.DataFrame:
    """Return :func:`ladder_table` of pings."""
    return ladder_table(run, PINGS)


def _of_share(run: Run, trials: pd.DataFrame, kind: str, share: str) -> list[pd.DataFrame]:
    column = f"{kind}_{share}_ms"
    typical = typical_rows(run, column).rename(columns={"value": "ms"})
    limit_ms = targets_ms()[f"{DELIVERIES}_{share}_ms"]
    parts = [
        trials.assign(what=TRIAL, ms=trials[column].astype(float)),
        typical[typical["n"] > 1],
        _published(run, share) if kind == PINGS else pd.DataFrame(),
        pd.DataFrame([{"what": TARGET, "ms": limit_ms}]),
    ]
    return [part.assign(percentile=share).reindex(columns=COLUMNS) for part in parts if len(part)]


def _published(run: Run, share: str) -> pd.DataFrame:
    """Return the published percentile of each rung that repeats a row of the study's table."""
    rows = []
    for treatment in run.record.treatments:
        row = published_of(treatment.levels)
        if share in row.ms:
            state = SAME_LOAD if row.same_load else OTHER_LOAD
            rows.append((PUBLISHED, treatment.name, state, row.ms[share]))
    return pd.DataFrame(rows, columns=["what", "treatment", "state", "ms"])


def has_rungs(run: Run) -> bool:
    """Return whether a run compares rungs of the ladder."""
    return "rung" in run.record.factors


def has_pings(run: Run) -> bool:
    """Return whether a run compares rungs, in trials with enough pings for a p90."""
    column = f"{PINGS}_p90_ms"
    return has_rungs(run) and bool(run.trials().reindex(columns=[column])[column].notna().any())


def _chart(kind: str) -> RowChart:
    return RowChart(
        TITLES[kind],
        "Points: trials (hollow: refused). Bar: typical value over valid trials, with its 95%"
        " interval where n allows one (an arrow: it goes on); none of a single trial. Dashed: the"
        f" study's targets. {OF[kind]}",
        layers=(
            Points(looks=LOOKS, at=0.14, how={"s": 13}),
            Typical(among=(TRIAL,), at=-0.15, beyond=BEYOND, size=9),
            Rules((TARGET,), "target"),
            Published(at=-0.15),
        ),
        panels={share: Axis(f"{share}, ms (log)", log=True, sparse=True) for share in SHARES},
        panel="percentile",
        value="ms",
    )


LADDER = View("ladder", TITLES[DELIVERIES], ladder_table, _chart(DELIVERIES).draw, suits=has_rungs)
PINGED = View("pings", TITLES[PINGS], pings_table, _chart(PINGS).draw, suits=has_pings)


SERVICE = "chat"
# Phases differ in opacity, too: colours this light look alike in greyscale.
SHADES = {"ramp": 0.22, "plateau": 0.05, "tail": 0.14}
PHASE_LOOKS = {
    "ramp": Look("#D55E00", "^", "ramp: users join and begin"),
    "plateau": Look("#0072B2", "o", "plateau: all users act"),
    "tail": Look("#00805D", "s", "tail: users leave"),
}
MOST_PANELS = 4
WINDOW = "window"
# The text in the panel of a treatment without a window.
EMPTY = "no window of a valid trial"
_windows_of: WeakKeyDictionary[Run, pd.DataFrame] = WeakKeyDictionary()


def of_crowds(run: Run) -> bool:
    """Return whether a run has crowds of users; only the codec microbenchmark has none."""
    return not is_of_codecs(run)


def windows(run: Run) -> pd.DataFrame:
    """Return the run's windows of one second; several figures share one computation."""
    if run not in _windows_of:
        _windows_of[run] = stream_windows(run, SERVICE)
    return _windows_of[run]


def shown_windows(run: Run, columns: list[str]) -> pd.DataFrame:
    """Return treatment, phase and ``columns`` of the windows whose treatment has a panel."""
    whole_windows = windows(run)[["treatment", "phase", *columns]].dropna()
    return whole_windows[whole_windows["treatment"].isin([*looks_of(run.record)][:MOST_PANELS])]


def left_out(page: Page, most: int = MOST_PANELS) -> str:
    """Say how many treatments are not shown; empty where all are."""
    count = len(page.looks)
    return f" Shown: the first {most} of {count} treatments." if most < count else ""


def points(**how: Any) -> Points:
    """Return the layer that draws windows in the looks of their phases."""
    return Points((WINDOW,), by="phase", looks=PHASE_LOOKS, how=how)


TITLE = "two bands: CPU with logins under way, and without"
RUNGS = [COSTLY, FREE]
PANELS = {"users": "connected users", "messages_per_s": "messages delivered per second"}
LOGIN_COLUMNS = ["band", *PANELS, "cpu_percent", "words"]
LOGINS = ("costly logins", "free logins")
LOGIN_LOOKS = {
    look.label: look
    for look in (
        Look(PALETTE[1], "^", f"joining, {LOGINS[0]}"),
        Look(PALETTE[4], "v", f"all joined, {LOGINS[0]}"),
        Look(PALETTE[0], "o", f"joining, {LOGINS[1]}"),
        Look(PALETTE[6], "s", f"all joined, {LOGINS[1]}"),
    )
}


def login_bands_table(run: Run) -> pd.DataFrame:
    """Return the windows with a CPU share by band, after a row that states the bands' distance."""
    cut = windows(run)
    shown = cut[["treatment", "joining", *PANELS, "cpu"]].dropna()
    if shown.empty:
        return pd.DataFrame(columns=LOGIN_COLUMNS)
    names = [treatment.name for treatment in run.record.treatments][: len(RUNGS)]
    shown = shown[shown["treatment"].isin(names)]
    logins = shown["treatment"].map(dict(zip(names, LOGINS, strict=True)))
    joining = shown["joining"].map({True: "joining, ", False: "all joined, "})
    points = shown.assign(band=joining + logins, cpu_percent=100 * shown["cpu"])
    sentence = pd.DataFrame([{"words": bands(cut, names[0], names[1])}])
    return pd.concat([sentence, points], ignore_index=True)[LOGIN_COLUMNS]


def _login_published() -> float:
    return published_value("chat", "figure 3", "login band above the other", "cpu_difference")


def compares_logins(run: Run) -> bool:
    """Return whether the first two treatments of a run are costly and free logins."""
    return [treatment.levels.get("rung") for treatment in run.record.treatments][
        : len(RUNGS)
    ] == RUNGS


def draw_login_bands(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw both bands against users and against volume."""
    points = table[table["band"] != ""]
    chart = Planes(
        TITLE,
        "Every point is a second of a valid trial. At the same number of users, costly logins take"
        f" {''.join(table['words'])}; published: about {_login_published():g} points.",
        layers=(Points((), "band", LOGIN_LOOKS, how={"s": 10, "alpha": 0.7}),),
        planes=_planes,
        panel="against",
        x="x",
        y="cpu_percent",
        height_in=3.5,
        share_y=True,
    )
    by_panel = [points.assign(against=name, x=points[name].astype(float)) for name in PANELS]
    return chart.draw(pd.concat(by_panel, ignore_index=True), page)


def _planes(_: pd.DataFrame, __: Page) -> dict[str, Plane]:
    cpu = Axis(f"CPU use of {SERVICE}, % of a core", ends=(0, None))
    return {
        name: Plane(Axis(words, ends=(0, None), whole=True), cpu) for name, words in PANELS.items()
    }


LOGIN_BANDS = View("login_bands", TITLE, login_bands_table, draw_login_bands, suits=compares_logins)
