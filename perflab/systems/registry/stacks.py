"""What ``perflab stack up`` starts of the registry system."""

from __future__ import annotations

from perflab.systems.registry.service import PATH, stack
from perflab.trials.experiment import ReadyStack

STACKS = (
    ReadyStack(
        "registry",
        lambda: stack({"handler": "executor", "executor_threads": 100, "pool_connections": 150}),
        f"the large model is at {PATH} of the registry's address, its health page at /health/page",
    ),
)
