"""How many blocks a duel with a gate has: enough that each of its thresholds can be crossed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perflab.errors import ParameterError
from perflab.statistics.in_words import counted

if TYPE_CHECKING:
    from perflab.trials.run_parameters import RunParameters


def with_enough_blocks(
    values: dict[str, Any], checked: RunParameters, thresholds: int, subject: str
) -> dict[str, Any]:
    """Return the parameters of a duel, with more blocks where its gate needs them.

    ``values`` are those that were given, and ``thresholds`` counts the thresholds of all pairs.
    ParameterError where the given number of blocks is too small for any of them to be crossed.
    """
    from perflab.analysis.gates.gate_blocks import SPARE_BLOCKS, can_fail, can_fail_at_last
    from perflab.statistics.families import blocks_for_one

    if not thresholds:
        return values
    needed, rule = blocks_for_one(thresholds, sides=1), checked.until_decided
    if rule is None and "blocks" not in values:
        return values | {"blocks": max(int(checked.blocks), needed + SPARE_BLOCKS)}
    name = "blocks" if rule is None else "most_blocks"
    given = checked.planned_blocks
    if can_fail(given, thresholds) if rule is None else can_fail_at_last(rule, thresholds):
        return values
    while rule is not None and not can_fail_at_last(rule, thresholds):
        needed = rule.most_blocks + 1
        rule = checked.model_copy(update={"most_blocks": needed}).until_decided
    asked = counted(thresholds, "threshold")
    problem = (
        f"{name} = {given} is too few for {asked} (each counts for each variant): none could fail, "
        f"however much worse a variant is; give {name} = {needed} or more"
    )
    raise ParameterError(subject, [problem])
