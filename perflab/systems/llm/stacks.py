"""What ``perflab stack up`` starts of the LLM proxy system."""

from __future__ import annotations

from perflab.systems.llm.service import MODEL, stack
from perflab.trials.experiment import ReadyStack

STACKS = (
    ReadyStack(
        "llm",
        lambda: stack({"mode": "pass"}),
        f"Ollama's clients take the proxy's address, OpenAI's add /v1; the model is {MODEL}",
    ),
)
