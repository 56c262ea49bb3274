"""After a block: is everything decided that the run was made for? Only its recording is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perflab.numerals import counted
from perflab.recordings import Run, RunWriter, UntilDecided
from perflab.trials.events import Note

SHOWN = 3


def has_ended(writer: RunWriter, blocks: int, tell: Callable[[Note], None]) -> bool:
    """Look at a run of which so many blocks, from the first on, are committed.

    The look is recorded; a run that ends by it has no further blocks in its record. Whoever looks
    again at the same trials, after a resume, comes to the same.

    Returns
    -------
    bool
        Whether the run ends here. Never, where its number of blocks is fixed.
    """
    rule = writer.record.until_decided
    if rule is None:
        return False
    if rule.ended or not rule.is_due(blocks):
        return bool(rule.ended)
    # Loaded when it is needed: what a run of a fixed number of blocks measures beside is light.
    from perflab.analysis.treatments.open_claims import undecided_contrasts

    rule = rule.looked(blocks, undecided_contrasts(Run(writer.path)))
    changes: dict[str, Any] = {"until_decided": rule}
    if rule.ended:
        changes |= {"blocks": blocks, "order": writer.record.order[:blocks]}
    writer.update(**changes)
    tell(Note(text=_told(rule)))
    return bool(rule.ended)


def _told(rule: UntilDecided) -> str:
    last = rule.looks[-1]
    if rule.ended == "decided":
        return f"block {last.blocks}: every contrast is decided"
    names = ", ".join(last.undecided[:SHOWN])
    more = f" and {len(last.undecided) - SHOWN} more" if len(last.undecided) > SHOWN else ""
    ahead = f"next look after block {rule.next_look(last.blocks)}"
    if rule.next_look(last.blocks) < rule.most_blocks:
        ahead += f", at most {counted(rule.most_blocks, 'block')}"
    if rule.ended:
        ahead = "it has the most blocks that it may have"
    return f"block {last.blocks}, undecided: {names}{more}; {ahead}"
