"""What a recording says of its treatments, before the first trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from perflab.recordings import Reason, RunWriter, TreatmentRecord
from perflab.recordings.sameness import differences
from perflab.stacks.plan import StackPlan
from perflab.stacks.spec import load_service
from perflab.statistics.in_words import first_of
from perflab.trials.plan import Treatment

NAMED = ("name", "levels", "label")
MOST_CHANGES = 5


def treatment_records(
    treatments: Iterable[Treatment],
) -> tuple[list[TreatmentRecord], dict[str, Any]]:
    """Return the treatments for the record, and the parts that they share.

    Each field of a treatment is a part: its stack with all settings, its workload, its instruments.
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


def shared(value: Any, parts: dict[str, Any]) -> str:
    """Put a value into ``parts`` unless it is there, and return its key."""
    plain = to_jsonable_python(value)
    text = json.dumps(plain, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    parts.setdefault(key, plain)
    return key


def _whole(treatment: Treatment) -> dict[str, Any]:
    words = treatment.model_dump(mode="json", exclude=set(NAMED), exclude_none=True)
    return {**words, "stack": stack_record(treatment.stack)}


def stack_record(stack: StackPlan) -> dict[str, Any]:
    """Return a stack as plain data, with the default of every setting that it leaves open."""
    words = stack.model_dump(mode="json")
    for node, named in zip(stack.nodes, words["nodes"], strict=True):
        named["settings"] = load_service(node.service).with_defaults(node.settings)
    return words


def confirm(writer: RunWriter, treatment: str, reported: Mapping[str, Any]) -> list[Reason]:
    """Record the settings that a treatment's services report; return a reason if they changed.

    ``reported`` has the settings by node, from the treatment's latest trial.
    """
    recorded = writer.record.reported_by(treatment)
    if recorded is None:
        parts = dict(writer.record.parts)
        key = shared(reported, parts)
        writer.update(parts=parts, reported={**writer.record.reported, treatment: key})
        return []
    changed = list(map(str, differences(recorded, to_jsonable_python(reported))))
    if not changed:
        return []
    some = first_of(changed, MOST_CHANGES)
    text = f"services report other settings than those in the run's record: {some}"
    return [Reason(code="stack.settings", text=text)]
