"""perflab: a performance laboratory that marks doubtful numbers and never uses them silently."""

# ruff: noqa: F403, F405
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perflab.api import *

__all__ = [
    "answers", "bottlenecks", "claim_counts", "claim_ledger", "compare", "draw", "export",
    "findings", "latest_runs", "notebook_parameters", "open_run", "questions", "run", "runs",
    "save", "send_load", "show", "study_check", "summary", "trials_of",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Names load on first use, so that load workers and the reaper import this package quickly.
    if name in __all__:
        return getattr(importlib.import_module("perflab.api"), name)
    raise AttributeError(f"module 'perflab' has no attribute '{name}'")
