"""How methods of scripted users are marked and weighted as actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

from perflab.errors import ParameterError

Action = TypeVar("Action", bound=Callable[..., Awaitable[None]])
WEIGHT = "_perflab_weight"


@overload
def action(weight: Action) -> Action: ...
@overload
def action(weight: float = 1.0) -> Callable[[Action], Action]: ...
def action(weight: Any = 1.0) -> Any:
    """Mark a method as an action, chosen in proportion to its weight."""
    if callable(weight):
        setattr(weight, WEIGHT, 1.0)
        return weight

    def mark(method: Action) -> Action:
        if not weight > 0:
            raise ParameterError("action", [f"weight {weight!r} is not above 0"])
        setattr(method, WEIGHT, float(weight))
        return method

    return mark


def actions(kind: type) -> tuple[list[str], list[float]]:
    """Return the names of a class's actions and their weights.

    Raises
    ------
    ParameterError
        It has none.
    """
    found = {name: getattr(getattr(kind, name), WEIGHT, 0.0) for name in dir(kind)}
    names = [name for name, weight in found.items() if weight]
    if not names:
        raise ParameterError("script", [f"{kind.__name__} has no method marked with @action"])
    return names, [found[name] for name in names]
