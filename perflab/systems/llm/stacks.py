"""What ``perflab stack up`` starts of the LLM proxy system."""

from __future__ import annotations

from perflab.experiments import ReadyStack
from perflab.systems.llm.service import MODEL, stack

STACKS = (
    ReadyStack(
        "llm",
        lambda: stack({"mode": "pass"}),
        f"Ollama's clients take the proxy's address, OpenAI's add /v1; the model is {MODEL}",
    ),
)
