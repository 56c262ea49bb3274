"""The columns of a recording's tables: the lab's own, and those that instruments declare.

Instants are CLOCK_MONOTONIC nanoseconds; an instant of 0 never came. Durations and other units
are named in the columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pyarrow as pa

from perflab.errors import RecordingError

PHASE_COLUMN = re.compile(r"phase_(.+)_ms")
# The kernel's counters of TCP during a trial, in words.
TCP_COUNTERS = {
    "tcp_listen_overflows": "overflows of a listen backlog",
    "tcp_listen_drops": "connections dropped by a listening socket",
    "tcp_syn_retransmits": "SYNs sent again",
    "tcp_timeouts": "retransmission time-outs",
    "tcp_retransmits": "segments sent again",
    "tcp_resets_sent": "resets sent",
    "tcp_resets": "connections reset",
    "tcp_failed_connects": "failed connects",
}

# The columns of a table with their types, as pyarrow names them.
Columns = Mapping[str, str]
REQUESTS: Columns = {
    "stage": "string",
    "worker": "int16",
    "user": "int32",
    "planned_ns": "int64",
    "started_ns": "int64",
    "sent_ns": "int64",
    "first_byte_ns": "int64",
    "done_ns": "int64",
    "connect_ns": "int64",
    "status": "int16",
    "bytes": "int64",
    "error": "string",
}
SAMPLES: Columns = {
    "t_ns": "int64",
    "service": "string",
    "cpu_ns": "int64",
    "memory_bytes": "int64",
}
WAITS: Columns = {
    "t_ns": "int64",
    "state": "string",
    "wait_event_type": "string",
    "wait_event": "string",
    "count": "int32",
}
# One row per sampled call chain: its functions, the outermost first, joined by ``;``.
CALLS: Columns = {"chain": "string", "samples": "int64"}
# The samples in which a function was the innermost of a service's own code.
FUNCTIONS: Columns = {"function": "string", "library": "string", "samples": "int64"}
# How long a request was in a function of a service's own code.
TIMES: Columns = {"function": "string", "time_ms": "double"}
# Where the time of a request goes, and what is counted of it, per request: a row for each entry.
ACCOUNTS: Columns = {"kind": "string", "entry": "string", "count": "double", "time_ms": "double"}
# Every message of a stream. ``planned_ns`` is when the sending was due; the deliveries and answers
# of a message have the same. ``at_ns`` of a row ``sent`` is when the generator began to send,
# before encoding, like *started* of a request. ``at_ns`` of a row ``received`` is when the event
# loop handed over the read that completed the message. ``connected``, ``left`` and ``cut`` are no
# messages but events, and ``at_ns`` is when they happened.
MESSAGES: Columns = {
    "worker": "int16",
    "user": "int32",
    "direction": "string",
    "kind": "string",
    "planned_ns": "int64",
    "at_ns": "int64",
    "bytes": "int32",
}
# The bytes of a response's body that had arrived at several instants, first and last read included.
# ``request`` numbers the requests of a worker in the order of their ends; in the requests table the
# request is found by worker, user and planned instant.
PROGRESS: Columns = {
    "worker": "int16",
    "user": "int32",
    "request": "int64",
    "planned_ns": "int64",
    "at_ns": "int64",
    "bytes": "int64",
}
# The chunks of streamed answers, each an event of its stream. ``at_ns`` is the instant of the read
# that completed the chunk; chunks of one read have the same instant. ``bytes`` is its length, and
# ``number`` counts the chunks of a request from 0. ``is_end`` marks the requested end marker, which
# is no chunk. ``request`` is as in PROGRESS.
CHUNKS: Columns = {
    "worker": "int16",
    "user": "int32",
    "request": "int64",
    "planned_ns": "int64",
    "number": "int32",
    "at_ns": "int64",
    "bytes": "int32",
    "is_end": "bool",
}


TABLES = {
    table: pa.schema({name: pa.type_for_alias(kind) for name, kind in columns.items()})
    for table, columns in {
        "requests": REQUESTS, "samples": SAMPLES, "waits": WAITS, "messages": MESSAGES,
        "calls": CALLS, "progress": PROGRESS, "chunks": CHUNKS,
    }.items()
}  # fmt: skip
# A run whose trials share their time declares this table: a row for every counted turn of a trial.
TURNS = "turns"
TURN_COLUMNS: Columns = {
    "round": "int32",
    "begin_ns": "int64",
    "counted_ns": "int64",
    "end_ns": "int64",
    "finished": "int64",
    "carried_over": "int64",
    "late_ns": "int64",
}
# Every trial has these tables; it has others only where there was something to measure.
ALWAYS = ("requests", "samples")
STREAMED = ("messages", "progress", "chunks")
TABLE_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")
OWN_FILES = ("trial", "manifest", *ALWAYS)


def schemas(declared: Mapping[str, Columns]) -> dict[str, pa.Schema]:
    """Return the schemas of all tables of trials, by name: the declared ones and the lab's own.

    RecordingError where a declared table is not allowed.
    """
    added = {name: declared_schema(name, columns) for name, columns in declared.items()}
    return {**added, **TABLES}


def declared_schema(name: str, columns: Columns) -> pa.Schema:
    """Return the schema of a table that an instrument adds.

    RecordingError where its name or its columns are not allowed.
    """
    if not TABLE_NAME.fullmatch(name) or name in OWN_FILES:
        raise RecordingError(
            f"no table can be called {name!r:.100}: small letters, digits and _ are allowed, a "
            f"letter first, and none of {', '.join(OWN_FILES)}"
        )
    try:
        schema = pa.schema({name: pa.type_for_alias(kind) for name, kind in columns.items()})
    except ValueError as error:
        raise RecordingError(f"table {name}: {error}; string or int64 are such types") from None
    if not len(schema):
        raise RecordingError(f"table {name}: it has no column")
    if name in TABLES and schema != TABLES[name]:
        raise RecordingError(f"table {name}: the lab has a table of that name with other columns")
    return schema


def check_columns(schema: pa.Schema, kind: str, names: Iterable[str], where: str) -> None:
    """Refuse a table that lacks columns of its schema."""
    if missing := sorted({*schema.names} - {*names}):
        raise RecordingError(f"{where}: the {kind} table lacks {', '.join(missing)}")
