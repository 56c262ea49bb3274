"""The map of ratios over the flush cost that commits felt."""

from __future__ import annotations

from perflab.systems.inference.experiments.flush_map import (
    INSIDE,
    OUTSIDE,
    WITH_NO_EFFECT,
    _where,
)


def test_an_interval_that_also_holds_no_effect_is_not_marked() -> None:
    assert _where(1.6, 1.2, 1.9) == INSIDE
    assert _where(1.6, 0.6, 4.0) == WITH_NO_EFFECT
    assert _where(1.6, 0.6, 1.5) == OUTSIDE
