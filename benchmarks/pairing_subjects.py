"""What benchmarks/pairing.py compares: services, alike and with a planted difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from perflab.load.by_window import table_of, window_table
from perflab.load.result import LoadResult
from perflab.load.windows import Windows
from perflab.load.workload import ClosedLoop, Request, Scripted, Workload
from perflab.stacks.plan import Node, StackPlan
from perflab.systems.chat.users import DELIVERY
from perflab.systems.inference.service import InferenceParameters, endpoint
from perflab.systems.inference.service import stack as inference_stack
from perflab.systems.inference.service import workload as inference_workload

ECHO_WORK, ECHO_MORE_WORK = 200, 210
TALKERS = 16
Load = Callable[[Windows, float], Workload]
Table = Callable[[LoadResult, np.ndarray], pd.DataFrame]


@dataclass(frozen=True)
class Subject:
    """A service under load: both treatments' stacks by case, and the node that is their own.

    ``load`` makes a load of its windows and its length in s, ``table`` the table of its windows
    (:func:`perflab.load.by_window.window_table`) of what it left and their instants. In the first
    ``arriving_s`` of its windows users still arrive. ``slice_ms`` is long beside its responses.
    """

    node: str
    load: Load
    warmup_s: float
    plans: dict[str, tuple[StackPlan, StackPlan]]
    table: Table = lambda result, _: window_table(result)
    arriving_s: float = 0.0
    slice_ms: float = 50.0


def _closed_loop(request: Request, windows: Windows, length_s: float) -> Workload:
    arrivals = ClosedLoop(
        users=8, duration_s=length_s, max_duration_s=length_s + 1, windows=windows
    )
    return Workload(request=request, arrivals=arrivals)


def echo() -> Subject:
    """Return the echo service; planted are more rounds of SHA-256 per request."""

    def plan(name: str, work: int) -> StackPlan:
        settings = {"work": work, "name": name}
        return StackPlan(nodes=(Node(name="echo", service="echo", settings=settings),))

    copies = {"A/A": ECHO_WORK, "planted": ECHO_MORE_WORK}
    plans = {case: (plan("a", ECHO_WORK), plan("b", work)) for case, work in copies.items()}
    return Subject("echo", partial(_closed_loop, Request(node="echo")), 1.0, plans)


def inference() -> Subject:
    """Return the inference service; planted is a commit of its own for each insert.

    Both treatments share the database: it is never paused, and its CPU time is nobody's.
    """

    def plan(name: str, style: str) -> StackPlan:
        parameters = InferenceParameters(transaction_style=style, connection="keep_alive")
        whole = inference_stack(parameters, workers=1, pool_size=10)
        *others, own = whole.nodes
        return whole.model_copy(
            update={"nodes": (*others, own.model_copy(update={"apart": name})), "count": ()}
        )

    styles = {"A/A": "transaction", "planted": "autocommit"}
    plans = {case: (plan("a", "transaction"), plan("b", style)) for case, style in styles.items()}
    request = inference_workload(InferenceParameters(), endpoint("psycopg2")).request
    return Subject("inference", partial(_closed_loop, request), 3.0, plans, slice_ms=100.0)


def chat() -> Subject:
    """Return the chat service; planted is a message serialized for every receiver.

    Its users say something soon after they have heard what they said before: see
    ``benchmarks/pairing_talkers.py``. A request is here what somebody was given to hear.
    """

    def plan(name: str, serialize: str) -> StackPlan:
        settings: dict[str, str | int | float] = {
            "serialize": serialize, "deflate": "off", "login_hash": "none",
            "commit": "write_behind", "accounts": TALKERS,
        }  # fmt: skip
        return StackPlan(nodes=(Node(name="chat", service="chat", settings=settings, apart=name),))

    once = plan("a", "per_message")
    plans = {"A/A": (once, plan("b", "per_message")), "planted": (once, plan("b", "per_send"))}
    return Subject("chat", _talk, 3.0, plans, _heard, arriving_s=1.0, slice_ms=200.0)


def _talk(windows: Windows, length_s: float) -> Workload:
    arrivals = Scripted(
        script=f"{Path(__file__).with_name('pairing_talkers.py')}:Talker",
        users=TALKERS,
        duration_s=length_s,
        parameters={
            "codec": "json",
            "deflate": False,
            "spans": [(each.start_s, each.end_s) for each in windows.spans],
        },
    )
    return Workload(request=Request(node="chat"), arrivals=arrivals)


def _heard(result: LoadResult, windows: np.ndarray) -> pd.DataFrame:
    """Return the table of windows by deliveries: all of what was said, to each who heard it."""
    heard = result.messages[lambda rows: rows["kind"] == DELIVERY]
    planned, done = (heard[name].to_numpy(np.int64) for name in ("key", "at_ns"))
    good = np.ones(len(heard), dtype=bool)
    return table_of(windows, planned, planned, done, good, result.pauses)


SUBJECTS = {"echo": echo, "inference": inference, "chat": chat}
