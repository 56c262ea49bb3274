"""The record of a worker: one packed row per request, spooled to disk while the load runs."""

from __future__ import annotations

import contextlib
import struct
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from perflab.load.clients.exchange import Exchange
from perflab.load.clients.outcome import ERRORS, STAGES
from perflab.load.records import arrival_points
from perflab.load.records.arrival_points import packed_points
from perflab.load.records.chunk_rows import CHUNKS_FILE, packed_chunks
from perflab.load.records.names import PHASE_NAMES, TEMPLATE_NAMES, names_in, write_names
from perflab.load.records.spool import Spool, rows_in

if TYPE_CHECKING:
    import pandas as pd

INSTANTS = ("planned_ns", "started_ns", "sent_ns", "first_byte_ns", "done_ns")
# How long connecting and closing took; 0 where a request did neither.
DURATIONS = ("connect_ns", "close_ns")
ROW = np.dtype(
    [
        *[(name, "<i8") for name in (*INSTANTS, *DURATIONS)],
        ("bytes", "<i8"),
        ("user", "<i4"),
        ("kept", "<i4"),
        ("status", "<i2"),
        ("template", "<i2"),
        ("error", "i1"),
        ("stage", "i1"),
    ]
)
REQUESTS, PHASES = "requests.rows", "phases.rows"
PACK = struct.Struct("<8qiihhbb")
values_of = attrgetter(*(ROW.names or ()))
PHASE_ROW = np.dtype([("row", "<u4"), ("name", "<u2"), ("value_ms", "<f4")])
PHASE_PACK = struct.Struct("<IHf")
PHASE = "phase_{}_ms"
MAX_PHASES = 64


class Recorder:
    """Packs exchanges into rows of 78 bytes for its spools.

    The folder gets ``requests.rows``, ``phases.names`` and, if they have rows, ``phases.rows``,
    ``progress.rows`` and ``chunks.rows``.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._rows = Spool(folder / REQUESTS)
        self._rows.start()
        self._phases = Spool(folder / PHASES)
        self._progress = Spool(folder / arrival_points.FILE)
        self._chunks = Spool(folder / CHUNKS_FILE)
        self._names: dict[str, int] = {}
        self._count = 0

    def add(self, exchange: Exchange) -> None:
        """Record a finished exchange."""
        self._rows.add(PACK.pack(*values_of(exchange)))
        if exchange.phases:
            self._phases.add(self._packed_phases(exchange.phases))
        if exchange.progress is not None:
            self._progress.add(packed_points(self._count, exchange.progress))
        if exchange.prepared.streams:
            self._chunks.add(packed_chunks(self._count, exchange.stream))
        self._count += 1

    def _packed_phases(self, phases: dict[str, float]) -> bytes:
        row, packed = self._count, b""
        for name, value in phases.items():
            code = self._names.setdefault(name, len(self._names))
            if code < MAX_PHASES:
                packed += PHASE_PACK.pack(row, code, value)
        return packed

    def hand_over(self) -> None:
        """Spool the rows so far, so that others can read them."""
        self._rows.hand_over()

    def close(self) -> None:
        """Write everything; raise OSError where the disk did not take all of the record."""
        with contextlib.ExitStack() as closing:
            for spool in (self._rows, self._phases, self._progress, self._chunks):
                closing.callback(spool.close)
        write_names(self._folder, PHASE_NAMES, list(self._names)[:MAX_PHASES])


def rows(folder: Path, mode: Literal["r", "r+"] = "r") -> np.ndarray:
    """Return the rows that a worker wrote as a structured array, mapped from disk.

    With the mode ``r+`` a change of the array is one of the file.
    """
    return rows_in(folder / REQUESTS, ROW, mode)


def rows_since(folder: Path, first: int, most: int = 1 << 18) -> np.ndarray:
    """Return at most ``most`` rows that a worker has spooled so far, from row ``first`` on."""
    try:
        with (folder / REQUESTS).open("rb") as file:
            file.seek(first * ROW.itemsize)
            data = file.read(most * ROW.itemsize)
    except FileNotFoundError:
        data = b""
    return np.frombuffer(data[: len(data) // ROW.itemsize * ROW.itemsize], dtype=ROW)


def frame(folder: Path, worker: int, begin: int = 0, end: int | None = None) -> pd.DataFrame:
    """Return a worker's requests from row ``begin`` to ``end``, with words for codes."""
    # Workers write and do not read: with pandas they would take three times as long to start.
    import pandas as pd

    packed = rows(folder)[begin:end]
    data: dict[str, object] = {
        "stage": words(STAGES, packed["stage"]),
        "worker": np.full(len(packed), worker, dtype=np.int16),
        "user": np.array(packed["user"]),
        **{name: np.array(packed[name]) for name in (*INSTANTS, *DURATIONS, "status", "bytes")},
        "error": words(ERRORS, packed["error"]),
    }
    # A worker whose users sent nothing has no names, and the column of the others.
    if (folder / TEMPLATE_NAMES).exists():
        names = names_in(folder, TEMPLATE_NAMES) or ("",)
        data["template"] = words(names, packed["template"])
    phases = rows_in(folder / PHASES, PHASE_ROW)
    first, last = np.searchsorted(phases["row"], (begin, begin + len(packed)))
    for code, name in enumerate(names_in(folder, PHASE_NAMES)):
        values = phases[first:last][phases["name"][first:last] == code]
        column = np.full(len(packed), np.nan, dtype=np.float32)
        column[values["row"] - begin] = values["value_ms"]
        data[PHASE.format(name)] = column
    return pd.DataFrame(data)


def words(names: tuple[str, ...], codes: np.ndarray) -> np.ndarray:
    """Turn codes into words."""
    column: np.ndarray = np.array(names, dtype=object)[codes]
    return column
