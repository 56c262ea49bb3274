"""What ``perflab stack up`` starts of the MetricStream system."""

from __future__ import annotations

from perflab.stacks.plan import Node, StackPlan
from perflab.trials.experiment import ReadyStack

NODE = Node(name="metricstream", service="metricstream", settings={"keep_alive": "on"})

STACKS = (
    ReadyStack(
        "metricstream",
        lambda: StackPlan(nodes=(NODE,)),
        'post metrics to /metrics: {"client": "a", "metrics": [{"name": "cpu", "value": 0.5}]}',
    ),
)
