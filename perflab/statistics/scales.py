"""How two values are compared, and which bound a size is."""

from __future__ import annotations

from typing import Literal

Scale = Literal["ratio", "difference"]
Bound = Literal["", "at most", "at least"]
