"""What benchmarks/pairing.py compares: services, alike and with a planted difference."""

from __future__ import annotations

from dataclasses import dataclass

from perflab.load.workload import Request
from perflab.stacks.plan import Node, StackPlan
from perflab.systems.inference.service import InferenceParameters, endpoint
from perflab.systems.inference.service import stack as inference_stack
from perflab.systems.inference.service import workload as inference_workload

ECHO_WORK, ECHO_MORE_WORK = 200, 210


@dataclass(frozen=True)
class Subject:
    """A service under load: both treatments' stacks by case, and the node that is their own."""

    node: str
    request: Request
    users: int
    warmup_s: float
    plans: dict[str, tuple[StackPlan, StackPlan]]


def echo() -> Subject:
    """Return the echo service; planted are more rounds of SHA-256 per request."""

    def plan(name: str, work: int) -> StackPlan:
        settings = {"work": work, "name": name}
        return StackPlan(nodes=(Node(name="echo", service="echo", settings=settings),))

    copies = {"A/A": ECHO_WORK, "planted": ECHO_MORE_WORK}
    plans = {case: (plan("a", ECHO_WORK), plan("b", work)) for case, work in copies.items()}
    return Subject("echo", Request(node="echo"), 8, 1.0, plans)


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
    return Subject("inference", request, 8, 3.0, plans)


SUBJECTS = {"echo": echo, "inference": inference}
