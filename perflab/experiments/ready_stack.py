"""A stack that a user can start and keep, without an experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perflab.stacks.plan import StackPlan


@dataclass(frozen=True)
class ReadyStack:
    """What ``perflab stack up NAME`` starts; the ``hint`` is printed when it is up."""

    name: str
    plan: Callable[[], StackPlan]
    hint: str = ""
