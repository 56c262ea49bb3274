"""What ``perflab up`` starts of the MetricStream system."""

from __future__ import annotations

from perflab.experiments import ReadyStack
from perflab.stacks.plan import Node, StackPlan

NODE = Node(name="metricstream", service="metricstream", settings={"keep_alive": "on"})

STACKS = (
    ReadyStack(
        "metricstream",
        lambda: StackPlan(nodes=(NODE,)),
        'post metrics to /metrics: {"client": "a", "metrics": [{"name": "cpu", "value": 0.5}]}',
    ),
)
