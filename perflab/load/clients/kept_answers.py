"""Keeps the bodies of some answers, so that all can be told apart by their classes after the load.

Each answer has in its record the number of the kept one whose bytes it has, if there is such a one.
Answers of a new length are kept until 20 of about this length are, and of all others one in 64, at
random intervals. What they hold is looked at when the load is over: the client has no time for it.
"""

from __future__ import annotations

import base64
import json
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perflab.load.clients.encodings import encoding_of, in_order
from perflab.load.clients.exchange import Exchange
from perflab.load.clients.outcome import MEASURE
from perflab.load.clients.response import LONG_BYTES, header

FILE = "answers.json"
FIRST, ONE_IN = 20, 64
MOST_KEPT, MOST_BYTES, MOST_SIZES = 2_048, 16 << 20, 4_096
# Names of scripted requests have numbers below 1,024.
NAME_BITS = 10
# Lengths within 10% are about the same.
STEP = math.log(1.1)


class Kept(NamedTuple):
    """An answer that was kept; ``body`` is as it came, None if it was long."""

    number: int
    template: int
    status: int
    done_ns: int
    size: int
    content_type: str
    encoding: str
    body: bytes | None


def about(size: int) -> int:
    """Return the number of a class of lengths."""
    return round(math.log(size + 1) / STEP)


class AnswerKeeper:
    """Keeps answers of one worker's load."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._left = ONE_IN
        self._one_in = ONE_IN
        self._sizes: set[int] = set()
        self._full = self._measuring = False
        self._numbers: Counter[tuple[int, int, int]] = Counter()
        self._first: list[Kept] = []
        self._others: list[Kept] = []
        self._bytes = self._count = 0

    def keep(
        self, exchange: Exchange, head: bytes | Mapping[str, str], pieces: Sequence[bytes]
    ) -> int:
        """Keep a success or not; return its number, 0 if it is not kept.

        ``pieces`` are those of the body, all of them unless it is longer than LONG_BYTES.
        """
        self._left -= 1
        is_usual = self._full or exchange.bytes << NAME_BITS | exchange.template in self._sizes
        if is_usual and self._left and (self._measuring or exchange.stage != MEASURE):
            return 0
        return self._keep(exchange, head, pieces)

    def _keep(
        self, exchange: Exchange, head: bytes | Mapping[str, str], pieces: Sequence[bytes]
    ) -> int:
        if not self._measuring and exchange.stage == MEASURE:
            # What the warm-up has shown is not what the measurement shows.
            self._measuring, self._full = True, False
            self._sizes.clear()
            self._numbers.clear()
        place = exchange.template, exchange.status, about(exchange.bytes)
        is_first = self._numbers[place] < FIRST and self._bytes < MOST_BYTES
        if is_first:
            self._numbers[place] += 1
        else:
            self._sizes.add(exchange.bytes << NAME_BITS | exchange.template)
            self._full = len(self._sizes) >= MOST_SIZES
        if self._left <= 0:
            self._left = self._random.randrange(1, 2 * self._one_in)
        elif not is_first:
            return 0
        self._count += 1
        kept = self._first if is_first else self._others
        kept.append(self._described(exchange, head, pieces))
        self._bytes += len(kept[-1].body or b"")
        if len(self._others) > MOST_KEPT or self._bytes > 2 * MOST_BYTES:
            self._others, self._one_in = self._others[::2], 2 * self._one_in
            self._bytes = sum(len(each.body or b"") for each in (*self._first, *self._others))
        return self._count

    def _described(
        self, exchange: Exchange, head: bytes | Mapping[str, str], pieces: Sequence[bytes]
    ) -> Kept:
        if isinstance(head, bytes):
            content_type, encoding = header(head, "content-type"), encoding_of(head)
        else:
            named = {name.lower(): value for name, value in head.items()}
            content_type = named.get("content-type", "")
            encoding = in_order([named.get("content-encoding", "")])
        body = b"".join(pieces) if exchange.bytes <= LONG_BYTES else None
        return Kept(
            self._count, exchange.template, exchange.status, exchange.done_ns, exchange.bytes,
            content_type, encoding, body,
        )  # fmt: skip

    def write(self, folder: Path) -> None:
        """Write what was kept into a worker's folder."""
        rows: list[list[Any]] = []
        for each in (*self._first, *self._others):
            body = None if each.body is None else base64.b64encode(each.body).decode()
            rows.append([*each[:-1], body])
        (folder / FILE).write_text(json.dumps(rows))


def kept_in(folder: Path) -> list[Kept]:
    """Return the answers that a worker kept; none where it kept none."""
    file = folder / FILE
    rows: list[list[Any]] = json.loads(file.read_text()) if file.exists() else []
    bodies = [None if row[-1] is None else base64.b64decode(row[-1]) for row in rows]
    return [Kept._make([*row[:-1], body]) for row, body in zip(rows, bodies, strict=True)]
