"""How many users a load had over time, as its record shows it."""

from __future__ import annotations

import numpy as np
import pandas as pd


def joined(requests: pd.DataFrame) -> pd.DataFrame:
    """Return when users joined: a row for each instant at which some did, in their order.

    A user joins at the planned instant of its first request, also where the client was late. That
    a user has left cannot be seen: one who waits for its next turn leaves as little behind.

    Parameters
    ----------
    requests : DataFrame
        Requests of one load, with ``user`` and ``planned_ns``; those that were planned and never
        sent are users' turns like others.

    Returns
    -------
    DataFrame
        ``at_s``, from the first of all planned instants, and ``users``: how many had joined then.
    """
    firsts = requests.groupby("user")["planned_ns"].min()
    at_ns, counts = np.unique(firsts.to_numpy(dtype=np.int64), return_counts=True)
    since_ns = at_ns - (at_ns[0] if len(at_ns) else 0)
    return pd.DataFrame({"at_s": since_ns / 1e9, "users": np.cumsum(counts)})
