"""What a run is made of, written whole into its record: every treatment, with all its settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perflab.recordings import TreatmentRecord
from perflab.recordings.parts import shared
from perflab.stacks.plan import StackPlan
from perflab.stacks.spec import load_service
from perflab.trials.plan import Treatment

NAMED = ("name", "levels", "label")


def treatment_records(
    treatments: Iterable[Treatment],
) -> tuple[list[TreatmentRecord], dict[str, Any]]:
    """Return the treatments for the record, and the parts that they share.

    Whatever a treatment has is a part: its stack with all settings, its workload, who looks on.
    """
    parts: dict[str, Any] = {}
    records = [
        TreatmentRecord(
            name=item.name,
            levels=dict(item.levels),
            label=item.label,
            parts={name: shared(value, parts) for name, value in _whole(item).items()},
        )
        for item in treatments
    ]
    return records, parts


def _whole(treatment: Treatment) -> dict[str, Any]:
    words = treatment.model_dump(mode="json", exclude=set(NAMED), exclude_none=True)
    return {**words, "stack": resolved(treatment.stack)}


def resolved(stack: StackPlan) -> dict[str, Any]:
    """Return a stack as plain words, with the default of every setting that it leaves open."""
    nodes = [
        {
            **node.model_dump(mode="json"),
            "settings": load_service(node.service).resolve(node.settings),
        }
        for node in stack.nodes
    ]
    return {**stack.model_dump(mode="json"), "nodes": nodes}
