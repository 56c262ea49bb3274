"""How the trials of a block share its time: as a run is planned, and as its record has it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perflab.parameters import FrozenModel

Kind = Literal["auto", "trials", "slices"]
LONGEST_MS = 60_000.0


class Design(FrozenModel):
    """How the trials of a block share its time: one after the other, or in slices.

    ``slice_ms`` is the length of a window. ``paused`` names the treatments whose own services are
    paused while others have their turn. ``auto``, a length and the pauses are settled when services
    run; ``why`` then gives the reason.
    """

    kind: Kind = "trials"
    slice_ms: float | None = Field(default=None, ge=20, le=LONGEST_MS)
    paused: tuple[str, ...] | None = None
    why: str = ""

    @property
    def shares_time(self) -> bool:
        """Whether the trials of a block run in the same stretch of time."""
        return self.kind == "slices"

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to choose."""
        is_whole = self.slice_ms is not None and self.paused is not None
        return self.kind == "trials" or (self.shares_time and is_whole)

    def text(self) -> str:
        """Return the design in words: ``slices of 50 ms (why)``."""
        length = f" of {self.slice_ms:g} ms" if self.shares_time and self.slice_ms else ""
        paused = f", {', '.join(self.paused)} paused between its turns" if self.paused else ""
        return f"{self.kind}{length}{paused}" + (f" ({self.why})" if self.why else "")
