"""The cost of streams: successes, the proxy's CPU for an answer and for a chunk.

The module also counts the requests that a stop at a number of failures breaks off. A load tool's
failure rate depends on whether it counts them as failed: while users still join, and answers are
long, many of all requests are under way.
"""

from __future__ import annotations

import math

import pandas as pd

from perflab.instruments import Instrument, Load, Observation
from perflab.instruments.requests import success_share
from perflab.load.checks.chunk_times import times_of_chunks
from perflab.load.checks.failures import AroundStop, around_stop
from perflab.load.clients.outcome import CUT_OFF_CODES
from perflab.recordings.responses import or_bound
from perflab.systems.llm.stacks import PROXY
from perflab.trials.summary import cpu_per_success, cpu_share


class StreamCost(Instrument):
    """Sums up a load of answers.

    ``success_share``: successes over all measured requests that were planned and that the load's
    end did not cut off. ``server_cpu_us_per_answer`` and ``server_cpu_us_per_chunk``: the proxy's
    CPU time in the measured stage over its successes, and over their chunks that came in it.
    """

    def observe(self, load: Load) -> Observation:
        """Return columns only."""
        result, samples = load.result, load.samples
        of_proxy = samples[samples["service"] == PROXY]
        chunks = times_of_chunks(result)
        chunks_per_s = chunks.per_s if chunks else 0.0
        cpu_us_per_s = 1e6 * cpu_share(of_proxy, *result.window)
        columns = {
            "success_share": success_share(result, CUT_OFF_CODES),
            **cpu_per_success("server_cpu_us_per_answer", of_proxy, result),
            "server_cpu_us_per_chunk": cpu_us_per_s / chunks_per_s if chunks_per_s else math.nan,
        }
        return Observation(columns)


class BrokenOff(Instrument):
    """Sums up users, successes and requests when failures ended a load.

    ``users_at_stop`` are the users then; ``successes_until_stop`` count the warm-up, too.
    ``requests_begun`` are the requests that had ended by then and those under way.
    ``failure_share_broken_off`` is the failed requests and those under way over ``requests_begun``:
    the failure rate of a tool that breaks requests off. All are NaN if the load held all of its
    users. Then, and where the failures came only after the last user had left,
    ``users_at_stop_at_least`` is the number of all users.
    """

    def observe(self, load: Load) -> Observation:
        """Return columns only."""
        return Observation(stop_columns(around_stop(load.result), load.result.requests))


def stop_columns(stop: AroundStop | None, requests: pd.DataFrame) -> dict[str, float]:
    """Return the columns of :class:`BrokenOff`; ``stop`` is None if no failures ended the load."""
    # By the plan nobody is left after its end, which all users had reached.
    users = float(stop.users or 0) if stop else 0.0
    all_users = float(requests["user"].nunique())
    columns = or_bound("users_at_stop", users or all_users, is_known=users > 0)
    if stop is None:
        names = ("successes_until_stop", "requests_begun", "failure_share_broken_off")
        return columns | dict.fromkeys(names, math.nan)
    begun = stop.until.requests + stop.under_way
    lost = stop.until.failures + stop.under_way
    return columns | {
        "successes_until_stop": float(stop.until.successes),
        "requests_begun": float(begun),
        "failure_share_broken_off": lost / begun if begun else math.nan,
    }
