"""Settings as the services report them: recorded once, and held against every later trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from perflab.recordings import Reason, RunWriter
from perflab.recordings.differing import differences
from perflab.recordings.parts import shared

SHOWN = 5


def confirm(writer: RunWriter, treatment: str, reported: Mapping[str, Any]) -> list[Reason]:
    """Record what the services of a treatment report; return a reason where it is something new.

    Parameters
    ----------
    reported : mapping
        Node to its settings, as the services of the treatment's latest trial reported them.
    """
    recorded = writer.record.reported_by(treatment)
    if recorded is None:
        parts = dict(writer.record.parts)
        key = shared(reported, parts)
        writer.update(parts=parts, reported={**writer.record.reported, treatment: key})
        return []
    found = list(differences(recorded, to_jsonable_python(reported)))
    if not found:
        return []
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    text = "services report other settings than the run's record has: "
    text += ", ".join(map(str, found[:SHOWN])) + more
    return [Reason(code="stack.settings", text=text)]
