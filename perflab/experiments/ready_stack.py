"""A stack that a user can start and keep, without an experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perflab.stacks.plan import StackPlan


@dataclass(frozen=True)
class ReadyStack:
    """What ``perflab stack up NAME`` starts; the ``hint`` is printed when it is up.

    ``{secret_file}`` in it becomes the path of a file with the stack's secret, for stacks that a
    user needs it for.
    """

    name: str
    plan: Callable[[], StackPlan]
    hint: str = ""

    @property
    def shows_secret_file(self) -> bool:
        """Whether the user is told where the stack's secret is."""
        return "{secret_file}" in self.hint

    def hint_with(self, secret_file: Path | None) -> str:
        """Return the hint as it is printed."""
        return self.hint.replace("{secret_file}", str(secret_file))
