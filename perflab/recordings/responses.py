"""The responses that many systems share (``responses.csv``), and the lookup of a declaration.

A system declares the ones that its trials have, and adds those of its own table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from perflab.recordings.schema import Response, RunRecord
from perflab.recordings.typed_rows import rows_of

ANY = "*"
# The share of requests that failed, the reason against a trial in which too many did, and the
# remark on one in which few did; the responses that tell of failures themselves.
FAILURES, TOO_MANY_FAILED, SOME_FAILED = "failure_share", "server.failures", "server.some_failed"
OF_FAILURES = re.compile(r".*(failure|success|users_at_stop|users_held|users_missed).*")
# The reason against a trial whose client was late, and what services count without the client.
CLIENT_LATE = "generator.late"
# The remark on a service whose memory the kernel does not tell.
MEMORY_UNKNOWN = "service.memory_unknown"
# The rows in a variant's stores after its load; the remark on a store that all variants share, and
# how the name begins under which its processes are sampled.
STORE_ROWS, SHARED_STORE, OF_ALL = "store_rows", "store.shared", "shared "
# The responses of one of several requests.
BY_REQUEST = ("mean_ms", "p99_ms", FAILURES)
OF_REQUEST = re.compile(f"of_(.+)_({'|'.join(BY_REQUEST)})")
COUNTED_INSIDE = re.compile(r"(?!client_)(phase_|core_wait_|memory_|.*cpu).*")
# What of a time may be the client's own before its trials have a mark.
MAX_CLIENT_SHARE = 0.10
TABLE = Path(__file__).with_suffix(".csv")


class _Shared(Response):
    """A response that many systems share, and the group of it."""

    group: str


_GROUPS = {
    group: tuple(Response(**row.model_dump(exclude={"group"})) for row in rows)
    for group, rows in groupby(rows_of(TABLE, _Shared), attrgetter("group"))
}
# The requests of the measured stage and streamed answers, see :mod:`perflab.instruments.requests`;
# loads that end after a number of failures. Several requests of a load, by their names.
REQUESTS, NAMED_REQUESTS = _GROUPS["requests"], _GROUPS["named requests"]
STREAMS, STOPS = _GROUPS["streams"], _GROUPS["stops"]
# Trials that search a capacity; see :mod:`perflab.instruments.users_held`.
CAPACITY = _GROUPS["capacity"]
# What services report, and what is read of their processes, of the client and of the disk.
PHASES, CPU, MEMORY = _GROUPS["phases"], _GROUPS["cpu"], _GROUPS["memory"]
CLIENT, FLUSH = _GROUPS["client"], _GROUPS["flush"]
# Watched functions in profiled trials; see :mod:`perflab.instruments.profiler`.
PROFILE = _GROUPS["profile"]
# The responses of every trial; they also serve for recordings that declare none.
COMMON = (*REQUESTS, *PHASES, *CPU, *MEMORY, *CLIENT, *FLUSH, *PROFILE)


def beside(file: str) -> list[Response]:
    """Return the responses of the table that lies beside a module and is named like it."""
    return rows_of(Path(file).with_suffix(".csv"), Response)


def with_typical(responses: Iterable[Response], *names: str) -> tuple[Response, ...]:
    """Return responses of which the named ones alone are typical."""
    return tuple(each.model_copy(update={"typical": each.name in names}) for each in responses)


def of_request(base: str, name: str) -> str:
    """Return the column of a response of one of several requests."""
    return f"of_{name}_{base}"


def split_request(response: str) -> tuple[str, str]:
    """Return a response without the name of a request, and that name; empty where it has none."""
    match = OF_REQUEST.fullmatch(response)
    return (match[2], match[1]) if match else (response, "")


def is_share(response: Response) -> bool:
    """Return whether a response is a share of a whole, from 0 to 1."""
    return not response.unit and "share" in response.name


def at_least_column(response: str) -> str:
    """Return the column with the lower bound of a response, for trials that have only the bound."""
    return f"{response.removesuffix('_ms')}_at_least{'_ms' if response.endswith('_ms') else ''}"


def or_bound(response: str, value: float, is_known: bool) -> dict[str, float]:
    """Return the column of a response; where it is not known, ``value`` is its lower bound."""
    if is_known:
        return {response: value}
    return {response: math.nan, at_least_column(response): value}


def at_most_column(response: str) -> str:
    """Return the column with the upper end of a response whose value is the lower one."""
    return f"{response.removesuffix('_ms')}_at_most{'_ms' if response.endswith('_ms') else ''}"


def lower_end_column(response: str) -> str:
    """Return the column with the lower end of a response whose value is the upper one."""
    return f"{response}_lower_end"


def drift_column(response: str) -> str:
    """Return the column with the log ratio of a response at a load's end to that of the whole."""
    return f"{response}_drift"


def growth_column(response: str) -> str:
    """Return the column with what a response grows by with a request, in its unit."""
    name, _, unit = response.rpartition("_")
    return f"{name}_growth_{unit}"


def requests_column(response: str) -> str:
    """Return the column with the requests that were sent before a growing response was read."""
    return f"{response.rpartition('_')[0]}_requests"


def client_column(response: str) -> str:
    """Return the column with what of a response may be the client's own, in its unit.

    It is negative for a throughput: without a late client it would be higher.
    """
    name, _, unit = response.rpartition("_")
    return f"{name}_client_{unit}"


def without_client(values: Any, client: Any) -> Any:
    """Return values (numpy or pandas) less what of them may be the client's own.

    A hundredth is left at least, so that each has a logarithm.
    """
    return np.maximum(values - client, values / 100)


def resolution_column(response: str) -> str:
    """Return the column with the step between values that a source can tell: 1 for whole ms."""
    return f"{response}_resolution"


def declared(record: RunRecord) -> Sequence[Response]:
    """Return the responses of a run; the common ones where its record declares none."""
    return record.responses or COMMON


def named(responses: Sequence[Response], column: str) -> Response | None:
    """Return the declaration of a column with its ``*`` filled in; None where there is none.

    A name without ``*`` goes before patterns, and a longer pattern before shorter ones.
    """
    best = _best(responses, column)
    return None if best is None else _filled(best, column)


def response_of(record: RunRecord, column: str) -> Response:
    """Return the declaration of a column; an undeclared column has its name in words as title."""
    return named(declared(record), column) or Response(name=column, title=column.replace("_", " "))


def typical(record: RunRecord, columns: Iterable[str]) -> dict[str, Response]:
    """Return the declarations of those ``columns`` that are typical, in declared order."""
    known = declared(record)
    best = [(item, name) for name in columns if (item := _best(known, name)) and item.typical]
    best.sort(key=lambda pair: known.index(pair[0]))
    return {name: _filled(item, name) for item, name in best}


def _best(responses: Sequence[Response], column: str) -> Response | None:
    fitting = [item for item in responses if _middle(item, column) is not None]
    return max(fitting, key=lambda item: (ANY not in item.name, len(item.name)), default=None)


def _middle(response: Response, column: str) -> str | None:
    """Return the text for ``*`` in a column: "" without a ``*``, None where nothing fits."""
    match = re.fullmatch(response.name.replace(ANY, "(.+)"), column)
    return None if match is None else "".join(match.groups())


def _filled(response: Response, column: str) -> Response:
    """Return a declaration with the text of the column in the place of ``*``."""
    middle = _middle(response, column) or ""
    words = {
        field: getattr(response, field).replace(ANY, middle)
        for field in ("title", "heading", "noun")
    }
    return response.model_copy(update={"name": column, **words})
