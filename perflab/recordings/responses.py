"""The responses that many systems share, and the lookup of a column's declaration.

A system declares the ones that its trials have, and adds its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from perflab.recordings.schema import Response, RunRecord

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
TYPICAL_PERCENTILES = (50, 95, 99)

# The requests of the measured stage; see :mod:`perflab.instruments.requests`.
REQUESTS = (
    Response(
        name="throughput_rps", title="throughput", unit="requests/s", heading="requests/s",
        noun="throughput", better="more", typical=True,
    ),
    Response(
        name="mean_ms", title="mean response time", unit="ms", heading="mean ms",
        noun="response time", better="less", typical=True,
    ),
    *(
        Response(
            name=f"p{share}_ms", title=f"p{share} of the response time", unit="ms",
            heading=f"p{share} ms", noun="response time", better="less",
            typical=share in TYPICAL_PERCENTILES,
        )
        for share in (50, 90, 95, 99)
    ),
    Response(
        name="max_ms", title="longest response time", unit="ms", heading="max ms",
        noun="response time", better="less",
    ),
    Response(
        name="service_mean_ms", title="mean service time", unit="ms", noun="service time",
        better="less",
    ),
    Response(
        name="service_p99_ms", title="p99 of the service time", unit="ms", noun="service time",
        better="less",
    ),
    Response(
        name="connection_wait_*_ms", title="* of the wait for a connection", unit="ms",
        noun="wait for a connection", better="less",
    ),
)  # fmt: skip
# The requests of a load that has several, by their names.
NAMED_REQUESTS = (
    Response(
        name="of_*_mean_ms", title="mean response time of *", unit="ms",
        heading="* mean ms", noun="response time of *", better="less", typical=True,
    ),
    Response(
        name="of_*_p99_ms", title="p99 of the response time of *", unit="ms",
        heading="* p99 ms", noun="response time of *", better="less", typical=True,
    ),
    Response(
        name=f"of_*_{FAILURES}", title="share of requests of * that failed",
        heading="* failure share", noun="failures of *", better="less", typical=True,
    ),
)  # fmt: skip
# Streamed answers; see :mod:`perflab.instruments.requests`.
STREAMS = (
    *(
        Response(
            name=f"{column}_{name}_ms", title=f"{words} {noun}", unit="ms",
            heading=f"{short} {name} ms", noun=noun, better="less", typical=name in ("p50", "p99"),
        )
        for column, short, noun in (
            ("first_chunk", "first chunk", "time to the first chunk"),
            ("chunk_gap", "gap", "gap between chunks"),
        )
        for name, words in (("mean", "mean"), ("p50", "median"), ("p95", "p95 of the"),
                            ("p99", "p99 of the"))
    ),
    Response(
        name="chunks_per_s", title="chunks per second", unit="chunks/s", heading="chunks/s",
        noun="chunks per second", better="more", typical=True,
    ),
    Response(
        name="chunks_at_once_share", title="share of gaps that are 0: one read brought both chunks",
        noun="gaps of 0",
    ),
)  # fmt: skip
# Loads that end after a number of failures; see :mod:`perflab.instruments.requests`.
STOPS = (
    Response(
        name="users_at_stop", title="users when the failures ended the load", unit="users",
        heading="users at stop", noun="users at the stop", better="more", typical=True,
    ),
    Response(
        name="successes_until_stop", title="successes until the failures ended the load",
        unit="requests", heading="successes", noun="successes until the stop", better="more",
        typical=True,
    ),
)  # fmt: skip
# Trials that search a capacity; see :mod:`perflab.instruments.users_held`.
CAPACITY = (
    Response(
        name="users_held", title="most users that held the objectives, by search", unit="users",
        heading="users held", noun="users held", better="more", typical=True,
    ),
    Response(
        name="users_missed", title="fewest users that missed an objective, by search",
        unit="users", noun="users that missed", better="more",
    ),
    Response(name="capacity_steps", title="steps of the search", unit="steps", noun="steps"),
)  # fmt: skip
# The phases that a service reports.
PHASES = (
    Response(
        name="phase_*_p50_ms", title="median time of *", unit="ms", noun="time in *",
        better="less",
    ),
)  # fmt: skip
CPU = (
    Response(
        name="cpu_share_*", title="CPU cores that * uses", unit="cores", heading="CPU *",
        noun="CPU of *", typical=True,
    ),
    Response(
        name="core_wait_share_*", title="threads of * that wait for a core", unit="threads",
        noun="waiting for a core in *", better="less",
    ),
)  # fmt: skip
MEMORY = (
    Response(
        name="memory_*_bytes", title="largest resident memory of *", unit="bytes",
        noun="memory of *", better="less",
    ),
)  # fmt: skip
CLIENT = (
    Response(
        name="client_cpu_us_per_request", title="the client's CPU time per request", unit="us",
        noun="client CPU per request", better="less",
    ),
)  # fmt: skip
FLUSH = (
    Response(
        name="flush_p50_us", title="median cost of a disk flush", unit="us", noun="disk flush",
        better="less",
    ),
)  # fmt: skip
# Watched functions in profiled trials; see :mod:`perflab.instruments.profiler`.
PROFILE = (
    Response(name="profile_*_share", title="share of * in the time (profile)", noun="share of *"),
    Response(
        name="profile_*_us_per_message", title="time of * per message (profile)", unit="us",
        noun="time per message in *", better="less",
    ),
)  # fmt: skip
# The responses of every trial; they also serve for recordings that declare none.
COMMON = (*REQUESTS, *PHASES, *CPU, *MEMORY, *CLIENT, *FLUSH, *PROFILE)


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
