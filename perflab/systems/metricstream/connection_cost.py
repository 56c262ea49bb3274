"""The cost of connections: successes, the parts of a request, and the server's CPU for one.

The parts of a request on the client's clock come from the instants of the ``requests`` table.
*Connect* is the time from creating the socket until it is connected; *send* the rest of the time
from the start until the kernel has the request's bytes (a wait for a free connection included);
*wait* the time until the answer's first bytes are read; *receive* until the last are read; *close*
the client's closing of its socket. If the server closes first, the client waits for no more of the
teardown.
"""

from __future__ import annotations

import math

import pandas as pd
from pydantic import Field

from perflab.instruments import Instrument, Load, Observation
from perflab.instruments.requests import success_share
from perflab.load.records.result import LoadResult
from perflab.trials.summary import cpu_per_success

NODE = "metricstream"
PARTS = ("connect", "send", "wait", "receive", "close")


def part_columns(requests: pd.DataFrame) -> dict[str, float]:
    """Return the mean of every part (``part_*_ms``) and its share (``part_*_share``) of a trial.

    Means are over measured successes, NaN if there are none. Shares are of the parts' sum.
    """
    rows = requests[(requests["stage"] == "measure") & (requests["error"] == "")]
    parts_ns = {
        "connect": rows["connect_ns"],
        "send": rows["sent_ns"] - rows["started_ns"] - rows["connect_ns"],
        "wait": rows["first_byte_ns"] - rows["sent_ns"],
        "receive": rows["done_ns"] - rows["first_byte_ns"],
        "close": rows["close_ns"],
    }
    means_ms = {name: float(parts_ns[name].mean()) / 1e6 for name in PARTS}
    sum_ms = sum(means_ms.values())
    return {
        **{f"part_{name}_ms": mean_ms for name, mean_ms in means_ms.items()},
        **{f"part_{name}_share": mean_ms / sum_ms if sum_ms else math.nan
           for name, mean_ms in means_ms.items()},
    }  # fmt: skip


class ConnectionCost(Instrument):
    """Sums up a load of posts.

    ``success_share``: expected answers within the time-out over all measured requests that were
    planned, also those never sent; over those of a ``target_rate`` (requests/s, 0: none) where
    users who wait for answers are to keep it. ``server_cpu_us_per_request``: CPU time of the server
    over its successes in the measured stage. :func:`part_columns` adds the parts of a request.
    """

    target_rate: float = Field(default=0.0, ge=0)

    def observe(self, load: Load) -> Observation:
        """Return columns only."""
        of_server = load.samples[load.samples["service"] == NODE]
        columns = {
            "success_share": self._success_share(load.result),
            **cpu_per_success("server_cpu_us_per_request", of_server, load.result),
            **part_columns(load.result.requests),
        }
        return Observation(columns)

    def _success_share(self, result: LoadResult) -> float:
        if not self.target_rate:
            return success_share(result)
        achieved = result.throughput_rps / self.target_rate
        # The edges of the stage may hold a few answers more than the rate has in it.
        return 1.0 if achieved > 1.0 else achieved
