"""The settings of the link: what may be asked for, and what is shown to be in force."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pacing import UNLIMITED

WORD = "unlimited"
# The least and the most of each setting.
RANGES = {"round_trip_ms": (0, 1000), "bytes_per_s": (1000, 1_000_000_000)}


@dataclass(frozen=True)
class Settings:
    """The delay in ms, and bytes per second of each connection, in each direction."""

    round_trip_ms: float = 0.0
    bytes_per_s: float = UNLIMITED

    def changed(self, wanted: Mapping[str, Any]) -> Settings:
        """Return these settings with some changed to what a body without problem asks for."""
        numbers = {key: UNLIMITED if value == WORD else value for key, value in wanted.items()}
        return replace(self, **{key: float(value) for key, value in numbers.items()})

    def under_way_bytes(self) -> int:
        """Return what one full connection has on its way in one direction; 0 without a limit."""
        if math.isinf(self.bytes_per_s):
            return 0
        return int(self.bytes_per_s * self.round_trip_ms / 2000)

    def shown(self) -> dict[str, float | str]:
        """Return the settings as JSON can have them."""
        shown: dict[str, float | str] = asdict(self)
        return {key: WORD if value == UNLIMITED else value for key, value in shown.items()}


def problem_with(wanted: object) -> str:
    """Return what is wrong with a body of PUT /settings, or an empty string."""
    if not isinstance(wanted, dict) or not wanted or not set(wanted) <= set(RANGES):
        return f"the body must be a JSON object with some of {', '.join(RANGES)}"
    return "; ".join(filter(None, (problem_of(name, value) for name, value in wanted.items())))


def problem_of(name: str, value: object) -> str:
    """Return what is wrong with one setting, or an empty string."""
    (least, most), has_word = RANGES[name], name == "bytes_per_s"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (has_word and value == WORD) or (is_number and least <= value <= most):  # type: ignore[operator]
        return ""
    or_word = f', or "{WORD}"' * has_word
    return f"{name} = {value!r} must be a number from {least} to {most}{or_word}"
