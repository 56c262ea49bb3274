"""What a load showed, as a typed object that is read from and written as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from perflab.load.checks.failures import AroundStop, Cause
from perflab.load.records.times import Number
from perflab.parameters import FrozenModel
from perflab.recordings.schema import Reason, Remark


class TimesMs(FrozenModel):
    """Times by name (``p50``... ``max``, ``mean``), in ms.

    A time that requests without an end could move, or of too few, is None; ``at_least_ms`` has the
    lower bound of the former. ``client_ms`` says how much may be the client's own where that is
    more than a tenth; it is None for waits that are the client's work alone.
    """

    ms: Mapping[str, float | None]
    at_least_ms: Mapping[str, float] = {}
    client_ms: Mapping[str, float] | None = None

    @classmethod
    def of(cls, numbers: Mapping[str, Number], *, with_client: bool = True) -> TimesMs:
        """Return the times of a load's numbers."""
        at_least_ms = {name: number.at_least for name, number in numbers.items()}
        client_ms = {name: one.client_ms for name, one in numbers.items() if one.is_the_clients}
        return cls(
            ms={name: known(number.value) for name, number in numbers.items()},
            at_least_ms={name: low for name, low in at_least_ms.items() if not math.isnan(low)},
            client_ms=client_ms if with_client else None,
        )


class _WithTimes(FrozenModel):
    """A model whose times are keys of their own in JSON: ``response_time_at_least_ms``...

    What was not given is not written.
    """

    @model_serializer(mode="wrap")
    def _flat(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for name, value in handler(self).items():
            if isinstance(getattr(self, name), TimesMs):
                written |= {f"{name}_{key}": of for key, of in value.items() if of is not None}
            elif name in self.model_fields_set:
                written[name] = value
        return written

    @model_validator(mode="before")
    @classmethod
    def _nested(cls, values: Any) -> Any:
        read = dict(values)
        for name in [name for name in cls.model_fields if f"{name}_ms" in read]:
            keys = [key for key in TimesMs.model_fields if f"{name}_{key}" in read]
            read[name] = {key: read.pop(f"{name}_{key}") for key in keys}
        return read


class NameSummary(_WithTimes):
    """What a load showed of the requests of one name of scripted users."""

    name: str
    requests: int
    errors: int
    throughput_rps: float | None
    bytes_received: int
    response_time: TimesMs


class JudgedObjective(FrozenModel):
    """An objective and what was found; where ``held`` is None, ``why`` says what hides it."""

    objective: str
    percentile: float
    below_ms: float
    found_ms: float | None
    at_least_ms: float | None
    held: bool | None
    why: str


class LoadSummary(_WithTimes):
    """What a load showed, over the requests of its measure stage.

    Times are those of successes: ``response_time`` from the planned instant, ``service_time`` from
    sending. For throughput see :attr:`LoadResult.throughput_rps`; ``duration_s`` is from the first
    planned instant to the last end. ``bytes_received`` are those on the wire. The ``warnings``
    include the ``reasons``. ``failures`` are tracebacks of scripts, and ``unwritten`` says why the
    record is not whole, and where the written part lies; neither is written. Loads without streams,
    messages or a stop by failures lack what is of these.
    """

    requests: int
    errors: int
    errors_by_cause: tuple[Cause, ...]
    statuses: Mapping[str, int]
    duration_s: float
    throughput_rps: float | None
    offered_rps: float | None
    bytes_received: int
    bytes_per_s: float | None
    response_time: TimesMs
    service_time: TimesMs
    first_chunk: TimesMs | None = None
    chunk_gap: TimesMs | None = None
    chunks: int | None = None
    chunks_per_s: float | None = None
    chunks_at_once_share: float | None = None
    messages_received: int | None = None
    messages_sent: int | None = None
    messages_per_s: float | None = None
    message_delay: TimesMs | None = None
    by_name: tuple[NameSummary, ...]
    response_growth_ms_per_s: float
    generator_lag_ms: Mapping[str, float | None]
    connection_wait: TimesMs
    connections_opened: int
    client_cpu_us_per_request: float
    client_cpu_share: float
    client_real_time: bool
    client_run_delay_share: float
    loop_delay_p99_ms: float | None
    censored: int
    kernel: Mapping[str, int]
    littles_law_ratio: float | None
    unsent: int
    capped: int
    stopped: str
    stop: AroundStop | None = None
    objectives: tuple[JudgedObjective, ...]
    valid: bool
    reasons: tuple[Reason, ...]
    warnings: tuple[Remark, ...]
    failures: tuple[str, ...] = Field(default=(), exclude=True)
    unwritten: str = Field(default="", exclude=True)


def known(value: float) -> float | None:
    """Return a number for JSON: None in place of NaN."""
    return None if math.isnan(value) else value
