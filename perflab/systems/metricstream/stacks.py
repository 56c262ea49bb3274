"""What ``perflab stack up`` starts of the MetricStream system."""

from __future__ import annotations

from perflab.stacks.plan import Node, StackPlan
from perflab.trials.experiment import ReadyStack

NODE = Node(name="metricstream", service="metricstream", settings={"keep_alive": "on"})
# The study's server, which closes after every answer, and the load of the study's own tests. On
# four cores and more the placement of a link keeps the two on different cores.
CLOSING = Node(name="metricstream", service="metricstream")
NAIVE = Node(
    name="naive_client",
    service="naive_client",
    needs={"target": "metricstream"},
    placement="link",
)

STACKS = (
    ReadyStack(
        "metricstream",
        lambda: StackPlan(nodes=(NODE,)),
        'post metrics to /metrics: {"client": "a", "metrics": [{"name": "cpu", "value": 0.5}]}',
    ),
    ReadyStack(
        "naive_client",
        lambda: StackPlan(nodes=(CLOSING, NAIVE)),
        "a POST to /load of the naive client starts its load of 10 s, /results tells its numbers: "
        "those of a bad load generator, on purpose (services/naive_client/README.md)",
    ),
)
