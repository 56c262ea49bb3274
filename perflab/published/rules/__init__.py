"""The rules of the study check, by name: pure functions from parts to a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from perflab.published.parts import Parts, Result
from perflab.published.rules import arithmetic, designs, queues

Rule = Callable[[Parts], Result]

RULES: Mapping[str, Rule] = {
    rule.__name__: rule
    for rule in (
        arithmetic.product, arithmetic.total, arithmetic.change, arithmetic.share,
        arithmetic.shares_fit, arithmetic.same, arithmetic.ascending, arithmetic.room,
        queues.in_flight, queues.in_flight_at_most, queues.cost_share, queues.most_of_time,
        queues.time_each,
        queues.omitted_pings, queues.failures_over_threshold, queues.failures_with_broken_off,
        designs.percentile_support, designs.censored, designs.single_run, designs.few_each,
        designs.as_large_as, designs.near_limit,
        designs.two_changes, designs.missing_row, designs.two_estimands, designs.circular,
        designs.instants,
    )
}  # fmt: skip
