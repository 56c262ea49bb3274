"""What one request consists of on the client's clock: connect, send, wait, receive, close.

Instants are those of the ``requests`` table. *Connect* is from the socket's making until it is
connected; *send* what else passes from the take-up until the request's bytes are the kernel's (a
wait for a free connection included); *wait* until the answer's first bytes are read; *receive*
until the last are; *close* the client's closing of its socket. Where the server closes first, that
is all of the teardown that a client ever waits for.
"""

from __future__ import annotations

import math

import pandas as pd

PARTS = ("connect", "send", "wait", "receive", "close")


def parts_of(requests: pd.DataFrame) -> pd.DataFrame:
    """Return the parts of every request in ms, a column each.

    Parameters
    ----------
    requests : DataFrame
        Successful requests, as recorded. ``close_ns`` may be missing (older recordings): then
        close is NaN.
    """
    close_ns = requests.get("close_ns", pd.Series(math.nan, index=requests.index))
    taken_ns = requests["sent_ns"] - requests["started_ns"]
    parts_ns = {
        "connect": requests["connect_ns"],
        "send": taken_ns - requests["connect_ns"],
        "wait": requests["first_byte_ns"] - requests["sent_ns"],
        "receive": requests["done_ns"] - requests["first_byte_ns"],
        "close": close_ns,
    }
    return pd.DataFrame({name: parts_ns[name] / 1e6 for name in PARTS})


def part_columns(requests: pd.DataFrame) -> dict[str, float]:
    """Return the mean of every part (``part_*_ms``) and its share (``part_*_share``) of a trial.

    Over the measured successes; NaN where there is none. Shares are of the parts' sum.
    """
    good = requests[(requests["stage"] == "measure") & (requests["error"] == "")]
    means = parts_of(good).mean()
    whole = float(means.sum(skipna=False))
    return {
        **{f"part_{name}_ms": float(means[name]) for name in PARTS},
        **{f"part_{name}_share": float(means[name]) / whole if whole else math.nan
           for name in PARTS},
    }  # fmt: skip
