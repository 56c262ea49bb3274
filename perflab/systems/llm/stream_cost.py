"""What streams cost: who succeeded, how many were under way, and the proxy's CPU for each."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from perflab.instruments import Instrument, Load, Look, Observation, Scene
from perflab.instruments.instrument import no_node
from perflab.load.chunk_times import times_of_chunks
from perflab.load.outcome import CUT_OFF
from perflab.load.workload import Workload
from perflab.recordings import Reason
from perflab.stacks.plan import StackPlan


class StreamCost(Instrument):
    """Sums up a load of answers, and holds it to the service's own count.

    ``success_share``: successes over all measured requests that were planned and that the load's
    end did not cut off. ``server_cpu_us_per_answer`` and ``server_cpu_us_per_chunk``: CPU time of
    the node in the measured stage over its successes, and over their chunks that came in it.
    ``streams_in_flight_mean`` and ``_max``: requests between sending and their last byte.

    The service must have completed every success, and no more than was sent: of one that timed out
    it may have.
    """

    node: str

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _StreamCost(self, scene)

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that there is no such node."""
        return no_node("stream cost", self.node, stack)


class _StreamCost(Look):
    def __init__(self, asked: StreamCost, scene: Scene) -> None:
        self._asked = asked
        self._scene = scene
        self._completed: int | None = None

    def after(self) -> None:
        """Ask the service what it completed."""
        counts = self._scene.residents.counts(self._scene.treatment)
        self._completed = int(counts[self._asked.node]["completed"])

    def observe(self, load: Load) -> Observation:
        """Return columns, and whether the service's count contradicts the client's."""
        requests, window = load.result.requests, load.result.window
        cpu_us = cpu_us_per_s(load.samples, self._asked.node, window)
        found = times_of_chunks(load.result)
        mean, most = in_flight(requests, window)
        columns = {
            "success_share": success_share(requests, load.result.unsent),
            "server_cpu_us_per_answer": _each(cpu_us, load.result.throughput_rps),
            "server_cpu_us_per_chunk": _each(cpu_us, found.per_s if found else math.nan),
            "streams_in_flight_mean": mean,
            "streams_in_flight_max": most,
        }
        assert self._completed is not None
        wrong = miscounted(requests, self._completed)
        reasons = [Reason(code="server.count", text=wrong)] if wrong else []
        return Observation({**columns, "server_count": self._completed}, reasons=reasons)


def _each(per_s: float, number_per_s: float) -> float:
    return per_s / number_per_s if number_per_s > 0 else math.nan


def cpu_us_per_s(samples: pd.DataFrame, service: str, window: tuple[int, int]) -> float:
    """Return the CPU time that a service took in a window, in us per second; NaN where unknown."""
    own = samples[samples["service"] == service]
    begin_ns, end_ns = window
    if len(own) < 2 or end_ns <= begin_ns:
        return math.nan
    used = np.interp(window, own["t_ns"].to_numpy(), own["cpu_ns"].to_numpy())
    return float(used[1] - used[0]) / (end_ns - begin_ns) * 1e6


def success_share(requests: pd.DataFrame, unsent: int) -> float:
    """Return the successes of the measured stage over what was planned; NaN of nothing."""
    errors = requests.loc[requests["stage"] == "measure", "error"]
    errors = errors[~errors.isin(CUT_OFF)]
    planned = len(errors) + unsent
    return float((errors == "").sum()) / planned if planned else math.nan


def in_flight(requests: pd.DataFrame, window: tuple[int, int]) -> tuple[float, float]:
    """Return how many requests were under way in a window: the mean over time, and the most."""
    begin_ns, end_ns = window
    sent = requests[(requests["sent_ns"] > 0) & (requests["done_ns"] > begin_ns)]
    since = np.clip(sent["sent_ns"].to_numpy(), begin_ns, end_ns)
    until = np.clip(sent["done_ns"].to_numpy(), begin_ns, end_ns)
    if end_ns <= begin_ns or not len(sent):
        return math.nan, math.nan
    # At one instant whoever ends makes room before the next begins.
    changes = np.concatenate([np.ones(len(since)), -np.ones(len(until))])
    order = np.lexsort((changes, np.concatenate([since, until])))
    most = float(np.cumsum(changes[order]).max())
    return float((until - since).sum()) / (end_ns - begin_ns), most


def miscounted(requests: pd.DataFrame, completed: int) -> str:
    """Return how the service's count contradicts the requests; empty where it does not."""
    told = int((requests["error"] == "").sum())
    sent = int((requests["sent_ns"] > 0).sum())
    if told <= completed <= sent:
        return ""
    return (
        f"the proxy completed {completed} requests; the client was answered {told} in full, and"
        f" sent {sent}"
    )
