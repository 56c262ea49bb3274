"""The names of trials' folders."""

from __future__ import annotations

import re

from perflab.errors import RecordingError

TRIAL_ID = re.compile(r"b(\d{3,})-p(\d{2,})-a(\d+)")


def trial_id(block: int, position: int, attempt: int) -> str:
    """Return the name of a trial's folder, which sorts in the order the trials ran."""
    return f"b{block:03d}-p{position:02d}-a{attempt}"


def parse_trial_id(name: str) -> tuple[int, int, int]:
    """Return block, position and attempt.

    Raises
    ------
    RecordingError
        The name is not a trial's.
    """
    match = TRIAL_ID.fullmatch(name)
    if match is None:
        raise RecordingError(f"'{name}' is not a trial id (b<block>-p<position>-a<attempt>)")
    block, position, attempt = (int(part) for part in match.groups())
    return block, position, attempt
