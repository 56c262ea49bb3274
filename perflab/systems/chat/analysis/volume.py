"""How the volume of messages grows with the users, from trials that can tell it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from perflab.analysis.curves.power_laws import SMALLEST_X, PowerLaw, power_law
from perflab.numerals import counted
from perflab.recordings import Run, published_value

# With these delays users begin to act one after the other, as they joined: the number of those
# who act grows within a trial. With all others they begin together, and the rate jumps.
GROWING = ("action", "scheduled", "scaled")
JOINING, PLATEAU = "while users join and leave", "on the plateau"
# Fewer users send too rarely for a window to hold a rate.
FEWEST_USERS = 10


def volume_laws(run: Run, windows: pd.DataFrame) -> dict[str, PowerLaw]:
    """Return the exponents of volume = a users^b, by where they come from.

    ``while users join and leave``: from the crowds of each trial (see :func:`crowds`), for runs
    with a treatment in which users begin one after the other. ``on the plateau``: from whole trials
    with different numbers of users (see :func:`plateaus`), for runs with any other treatment.
    """
    growing = growing_treatments(run)
    laws = {}
    if growing:
        laws[JOINING] = crowd_law(crowds(run, windows))
    if len(growing) < len(run.record.treatments):
        laws[PLATEAU] = plateau_law(plateaus(run))
    return laws


def growing_treatments(run: Run) -> list[str]:
    """Return the treatments in which those who act become more as users join."""
    return [
        item.name for item in run.record.treatments if item.levels.get("first_delay") in GROWING
    ]


def crowds(run: Run, windows: pd.DataFrame) -> pd.DataFrame:
    """Return volume by crowd: one row per trial and tenth of the largest crowd.

    Only of treatments in which users begin one after the other: where they begin together the
    rate jumps at once, while those who act are counted from half an interval before. A message goes
    from those who act to those who are connected, a monitor included; where these differ (users
    who have joined and not begun) ``crowd`` is their geometric mean. Columns: block (the trial's
    id), crowd, messages_per_s.
    """
    own = windows[windows["treatment"].isin(growing_treatments(run))]
    # Seconds without a delivery count as well: without them small crowds would look busier.
    busy = own[own["acting"] >= FEWEST_USERS]
    if busy.empty:
        return pd.DataFrame(columns=["block", "crowd", "messages_per_s"])
    size = np.sqrt(busy["acting"] * busy["listeners"])
    place = np.ceil(10 * size / size.max())
    means = busy.assign(crowd=size).groupby([busy["trial_id"], place])
    table = means[["crowd", "messages_per_s"]].mean()
    return table.reset_index().rename(columns={"trial_id": "block"})[
        ["block", "crowd", "messages_per_s"]
    ]


def plateaus(run: Run) -> pd.DataFrame:
    """Return users and volume of every valid trial while all users act.

    Columns: block, users (of the treatment), messages_per_s (delivered). Trials without a plateau
    are left out.
    """
    trials = run.valid_trials()
    users = {
        item.name: float(item.levels["users"])
        for item in run.record.treatments
        if "users" in item.levels
    }
    table = trials.assign(users=trials["treatment"].map(users).astype(float))
    return table.reindex(columns=["block", "users", "messages_per_s"]).dropna(ignore_index=True)


def crowd_law(table: pd.DataFrame) -> PowerLaw:
    """Fit one exponent per trial to :func:`crowds`; refused below 4 trials.

    The sizes that a crowd has within a trial are not trials.
    """
    return power_law(table, "crowd", "messages_per_s", unit="trial")


def plateau_law(table: pd.DataFrame) -> PowerLaw:
    """Fit an exponent to :func:`plateaus`; refused below 3 numbers of users, or 4 blocks."""
    found = power_law(table, "users", "messages_per_s")
    counts = int(table["users"].nunique())
    if counts >= SMALLEST_X:
        return found
    seen = counted(counts, "number")
    reason = f"no exponent from treatments with {seen} of users: {SMALLEST_X} are needed"
    return replace(found, reason=reason, warnings=())


def published_factor(run: Run) -> float | None:
    """Return a of the published volume = a users^b; None where users act or hear otherwise."""
    wanted = {
        "action_s": published_value("chat", "workload", "all", "action_interval"),
        "subscriber_share": published_value(
            "chat", "system", "all", "receivers_per_message_per_user"
        ),
    }
    if any(run.record.parameters.get(name) != value for name, value in wanted.items()):
        return None
    return published_value("chat", "system", "all", "volume_per_users_squared")
