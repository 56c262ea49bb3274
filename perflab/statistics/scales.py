"""How two values are compared, and what is known of a published size."""

from __future__ import annotations

from typing import Literal

Scale = Literal["ratio", "difference"]
Bound = Literal["", "at most", "at least"]
