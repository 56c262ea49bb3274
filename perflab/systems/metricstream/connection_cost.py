"""What connections cost: who succeeded, the parts of a request, and the server's CPU for one.

What one request consists of on the client's clock: connect, send, wait, receive, close.

Instants are those of the ``requests`` table. *Connect* is from the socket's making until it is
connected; *send* what else passes from the take-up until the request's bytes are the kernel's (a
wait for a free connection included); *wait* until the answer's first bytes are read; *receive*
until the last are; *close* the client's closing of its socket. Where the server closes first, that
is all of the teardown that a client ever waits for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
from pydantic import Field

from perflab.instruments import Instrument, Load, Look, Observation, Scene
from perflab.instruments.instrument import no_node
from perflab.load.records.result import LoadResult
from perflab.load.workload import Workload
from perflab.recordings import Reason
from perflab.stacks.plan import StackPlan

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


class ConnectionCost(Instrument):
    """Sums up a load of posts, and holds it to the server's own count.

    ``success_share``: answers as expected within the time-out, of all measured requests that were
    planned, those included that were never sent. ``server_cpu_us_per_request``: CPU time of the
    node over its successes in the measured stage. The means of the parts of a request and their
    shares are those of :mod:`perflab.systems.metricstream.connection_cost`.

    The server must have taken ``metrics`` samples for every success, and no more than for every
    request that was sent: one that timed out may have been taken, too.
    """

    node: str
    metrics: int = Field(ge=1)

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _ConnectionCost(self, scene)

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that there is no such node."""
        return no_node("connection cost", self.node, stack)


class _ConnectionCost(Look):
    def __init__(self, asked: ConnectionCost, scene: Scene) -> None:
        self._asked = asked
        self._scene = scene
        self._taken: int | None = None

    def after(self) -> None:
        """Ask the server what it took."""
        counts = self._scene.residents.counts(self._scene.treatment)
        self._taken = int(counts[self._asked.node]["samples_taken"])

    def observe(self, load: Load) -> Observation:
        """Return columns, and whether the server's count contradicts the client's."""
        requests = load.result.requests
        columns = {
            "success_share": success_share(load.result),
            "server_cpu_us_per_request": cpu_us_per_request(load, self._asked.node),
            **part_columns(requests),
        }
        assert self._taken is not None
        wrong = miscounted(requests, self._taken, self._asked.metrics)
        reasons = [Reason(code="server.count", text=wrong)] if wrong else []
        return Observation({**columns, "server_count": self._taken}, reasons=reasons)


def success_share(result: LoadResult) -> float:
    """Return the successes of the measured stage over what was planned; NaN of nothing."""
    errors = result.measured(lambda rows: rows["error"])
    planned = len(errors) + result.unsent
    return float((errors == 0).sum()) / planned if planned else math.nan


def cpu_us_per_request(load: Load, service: str) -> float:
    """Return the CPU time that a service took for a success, in us; NaN where it is not known."""
    own = load.samples[load.samples["service"] == service]
    good = load.result.requests
    begin_ns, end_ns = load.result.window
    done = int(((good["error"] == "") & good["done_ns"].between(begin_ns + 1, end_ns)).sum())
    if len(own) < 2 or not done:
        return math.nan
    used = np.interp([begin_ns, end_ns], own["t_ns"].to_numpy(), own["cpu_ns"].to_numpy())
    return float(used[1] - used[0]) / 1e3 / done


def miscounted(requests: pd.DataFrame, taken: int, metrics: int) -> str:
    """Return how the server's count of samples contradicts the requests; empty where it does not.

    Parameters
    ----------
    requests : DataFrame
        All of the load, its warm-up included.
    taken : int
        Samples that the server says it took.
    metrics : int
        Samples in a request.
    """
    told = metrics * int((requests["error"] == "").sum())
    sent = metrics * int((requests["sent_ns"] > 0).sum())
    if told <= taken <= sent:
        return ""
    return (
        f"the server took {taken} samples; the client was told of {told}, and sent {sent} at most"
    )
