"""Phases of an inference: those of every service, and the way back from the endpoint."""

from __future__ import annotations

from specimen import timing

KEY = timing.KEY


class Phases(timing.Phases):
    """Durations of one request's phases, in ms."""

    def __init__(self) -> None:
        super().__init__()
        self._done_ns = 0

    def done(self) -> None:
        """Note that the endpoint has its answer: what is left is to check it and to answer."""
        self._done_ns = timing.clock()

    def header(self) -> str:
        """Return the header's value."""
        if self._done_ns:
            self.add("answer", self._done_ns)
        return super().header()
