"""One request under way: the record that travels with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from perflab.load.outcome import MEASURE
from perflab.load.prepared import Prepared
from perflab.load.progress import Progress
from perflab.load.streamed import Streamed

if TYPE_CHECKING:
    from perflab.load.connection import Connection


class Exchange:
    """One request under way: its instants (CLOCK_MONOTONIC, ns; 0: never came) and outcome.

    Made once per user or slot and used again; ``finish`` is called when it is done. ``answer`` is
    the head of the response and its body, where the request wants them; ``progress`` the points of
    its body's arrival, ``stream`` the chunks of it.
    """

    __slots__ = (
        "answer",
        "bytes",
        "chain",
        "close_ns",
        "connect_ns",
        "connection",
        "done_ns",
        "error",
        "finish",
        "first_byte_ns",
        "phases",
        "planned_ns",
        "prepared",
        "progress",
        "redirects",
        "sent_ns",
        "stage",
        "started_ns",
        "status",
        "stream",
        "template",
        "user",
    )

    def __init__(self, prepared: Prepared, user: int, finish: Callable[[Exchange], None]) -> None:
        self.prepared = prepared
        self.user = user
        self.finish = finish
        self.stage = MEASURE
        self.template = 0
        self.connection: Connection | None = None
        self.planned_ns = self.started_ns = self.done_ns = 0
        self.status = self.bytes = self.error = self.redirects = 0
        self.phases: dict[str, float] | None = None
        self.chain: tuple[Prepared, int, int] | None = None
        self.answer: tuple[bytes, bytes] | None = None
        self.progress: Progress | None = None
        self.stream: Streamed | None = None
        self.renew()

    def renew(self) -> None:
        """Forget the instants that the next request may not come to; its end sets the rest."""
        self.sent_ns = self.first_byte_ns = self.connect_ns = self.close_ns = 0
        self.progress = self.stream = None

    def end_chain(self) -> None:
        """Give a chain of redirects the request it began with, and the instant of its sending."""
        if self.chain is not None:
            self.prepared, self.sent_ns, self.connect_ns = self.chain
            self.chain = None
            self.redirects = 0
