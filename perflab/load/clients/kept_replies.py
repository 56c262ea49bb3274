"""Keeps the bodies of some answers, so that all can be told apart by their classes after the load.

Each answer has in its record the number of the kept one whose bytes it has, if there is such a one.
Answers of a new length are kept until 20 of about this length are, and of all others one in 61, by
the last digits of their instants. What they hold is looked at when the load is over: the client has
no time for it.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perflab.load.clients.exchange import Exchange
from perflab.load.clients.outcome import MEASURE
from perflab.load.clients.response import LONG_BYTES, encoding_of, header

FILE = "answers.json"
# An answer whose last instant is a multiple of a prime is drawn: no clock ticks in such steps.
FIRST, ONE_IN = 20, 61
MOST_KEPT, MOST_BYTES, MOST_SIZES = 2_048, 16 << 20, 4_096
# The lean client may still give an answer the number of one of so many, the latest.
LATEST = 64
# Names of scripted requests have numbers below 1,024.
NAME_BITS = 10
# Lengths within 10% are about the same.
STEP = math.log(1.1)
# No cookie goes to the disk.
READ_LATER = re.compile(rb"\r\ncontent-(?:type|encoding)[^\r]*", re.IGNORECASE)


class Kept(NamedTuple):
    """An answer that was kept; ``body`` is as it came, None if it was long.

    Of its ``head`` only what describes the body is written.
    """

    number: int
    template: int
    status: int
    size: int
    head: bytes
    body: bytes | None

    @property
    def content_type(self) -> str:
        """Return the media type of the body, as its head says it."""
        return header(self.head, "content-type")

    @property
    def encoding(self) -> str:
        """Return what the body went through, such as ``gzip``."""
        return encoding_of(self.head)


def about(size: int) -> int:
    """Return the number of a class of lengths."""
    return round(math.log(size + 1) / STEP)


class ReplyKeeper:
    """Keeps answers of one worker's load.

    Of most answers a client only asks ``is_passed_over``; the lean client does so in its own words,
    as a call for each answer would be 2% of its CPU time.
    """

    def __init__(self) -> None:
        # Of answers as long as these there are enough.
        self.usual: set[int] = set()
        self._is_measuring = False
        # Of the answers that were drawn, one in so many is kept.
        self._one_in = 1
        self._numbers: Counter[tuple[int, int, int]] = Counter()
        self._first: list[Kept] = []
        self._others: list[Kept] = []
        self._bytes = self._count = 0

    def is_passed_over(self, exchange: Exchange) -> bool:
        """Return whether there are enough answers like this one."""
        return bool(
            exchange.done_ns % ONE_IN
            and exchange.bytes << NAME_BITS | exchange.template in self.usual
        )

    def keep(self, exchange: Exchange, head: bytes, pieces: Sequence[bytes]) -> int:
        """Keep a success or not; return its number, 0 if it is not kept.

        ``pieces`` are those of the body, all of them unless it is longer than LONG_BYTES.
        """
        if not self._is_measuring and exchange.stage == MEASURE:
            # What the warm-up has shown is not what the measurement shows.
            self._is_measuring = True
            self.usual.clear()
            self._numbers.clear()
        place = exchange.template, exchange.status, about(exchange.bytes)
        is_first = self._numbers[place] < FIRST and self._bytes < MOST_BYTES
        if is_first:
            self._numbers[place] += 1
        else:
            if len(self.usual) < MOST_SIZES:
                self.usual.add(exchange.bytes << NAME_BITS | exchange.template)
            if exchange.done_ns % (ONE_IN * self._one_in):
                return 0
        self._count += 1
        kept = Kept(
            self._count, exchange.template, exchange.status, exchange.bytes, head,
            b"".join(pieces) if exchange.bytes <= LONG_BYTES else None,
        )  # fmt: skip
        (self._first if is_first else self._others).append(kept)
        self._bytes += len(kept.body or b"")
        if len(self._others) > MOST_KEPT or self._bytes > 2 * MOST_BYTES:
            earlier, latest = self._others[:-LATEST], self._others[-LATEST:]
            self._others, self._one_in = [*earlier[::2], *latest], 2 * self._one_in
            self._bytes = sum(len(each.body or b"") for each in (*self._first, *self._others))
        return self._count

    def write(self, folder: Path) -> None:
        """Write what was kept into a worker's folder."""
        rows = [
            [
                *each[:-2],
                b"".join(READ_LATER.findall(each.head)).decode("latin-1"),
                None if each.body is None else base64.b64encode(each.body).decode(),
            ]
            for each in (*self._first, *self._others)
        ]
        (folder / FILE).write_text(json.dumps(rows))


def kept_in(folder: Path) -> list[Kept]:
    """Return the answers that a worker kept; none where it kept none."""
    file = folder / FILE
    rows: list[list[Any]] = json.loads(file.read_text()) if file.exists() else []
    bodies = [None if row[-1] is None else base64.b64decode(row[-1]) for row in rows]
    return [
        Kept._make([*row[:-2], row[-2].encode("latin-1"), body])
        for row, body in zip(rows, bodies, strict=True)
    ]
