"""The proxy as a treatment: the stand-in for a model, and the service before it."""

from __future__ import annotations

from collections.abc import Mapping

from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.spec import Value

# The stand-in's own name for itself; requests must ask for it.
MODEL = "stand-in"
NOTHING: Mapping[str, Value] = {}


def stack(
    settings: Mapping[str, Value] = NOTHING, *, upstream: Mapping[str, Value] = NOTHING
) -> StackPlan:
    """Return the stand-in and the proxy before it.

    Parameters
    ----------
    settings : mapping
        Those of the proxy (``services/llm_proxy/service.toml``). With ``upstream_url`` it asks that
        server, and the stand-in idles.
    upstream : mapping
        Those of the stand-in (``services/llm_upstream/service.toml``).
    """
    return StackPlan(
        nodes=(
            Node(name="model", service="llm_upstream", placement="database", settings=upstream),
            Node(name="proxy", service="llm_proxy", needs={"upstream": "model"}, settings=settings),
        )
    )
