"""What ``perflab stack up`` starts of tally."""

from perflab.stacks.plan import Node, StackPlan
from perflab.trials.experiment import ReadyStack


def stack(delay_ms: float = 0.0) -> StackPlan:
    """Return the one service."""
    node = Node(name="tally", service="tally", settings={"delay_ms": delay_ms})
    return StackPlan(nodes=(node,))


STACKS = (ReadyStack("tally", stack, "POST any bytes to /"),)
