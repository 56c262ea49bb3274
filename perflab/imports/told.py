"""What the output of a load tool tells of one load, and the requests that it lists."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from perflab.errors import ImportRefused
from perflab.instruments.other_load import REQUEST
from perflab.percentiles import OF_LOADS, percentiles_of
from perflab.recordings import Remark
from perflab.recordings.columns import declared_schema

TABLE = "other_load"
MOST_REQUESTS = 20_000_000
# Messages of errors may hold ports and times: so many different ones are kept.
MOST_OUTCOMES = 1_000
LONGEST_OUTCOME = 200
NS_PER_MS = 1e6


@dataclass(frozen=True)
class Told:
    """What a tool tells of one load; None and NaN stand for what it does not tell.

    ``times_ms`` are statistics of its times by name (``mean``, ``p50``, ``p99_9``, ``max``).
    ``rows`` are its requests with the columns of :data:`REQUEST`. ``settings`` are words on how it
    was started; ``from_plan`` says that its times count from planned instants.
    """

    requests: int | None = None
    failures: int | None = None
    duration_s: float = math.nan
    throughput_rps: float = math.nan
    times_ms: Mapping[str, float] = field(default_factory=dict)
    rows: pa.Table | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()


def share_name(percent: float) -> str:
    """Return what a percentile (0 to 100) is called in columns: ``p99``, ``p99_9``."""
    return f"p{percent:.10g}".replace(".", "_")


class RequestRows:
    """Requests as they are read, some 40 bytes each, whatever a line of the file takes."""

    def __init__(self) -> None:
        self.failures = 0
        self._start, self._first, self._end = array("d"), array("d"), array("d")
        self._bytes = array("d")
        self._outcome = array("l")
        self._codes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._start)

    def add(
        self,
        start_ms: float,
        first_byte_ms: float,
        end_ms: float,
        length: float,
        outcome: str,
        failed: bool,
    ) -> None:
        """Note a request; its instants count from any one instant, NaN stands for unknown.

        Raises
        ------
        ImportRefused
            There are more than a recording can hold.
        """
        if len(self._start) >= MOST_REQUESTS:
            raise ImportRefused(
                f"a load has more than {MOST_REQUESTS:,} requests; import a summary"
            )
        self._start.append(start_ms)
        self._first.append(first_byte_ms)
        self._end.append(end_ms)
        self._bytes.append(length)
        name = outcome[:LONGEST_OUTCOME]
        if name not in self._codes and len(self._codes) >= MOST_OUTCOMES:
            name = "another outcome"
        self._outcome.append(self._codes.setdefault(name, len(self._codes)))
        self.failures += failed

    def table(self) -> pa.Table:
        """Return the requests, in the order of the file; instants count from the first start."""
        start = np.asarray(self._start)
        begin = start.min() if len(start) else 0.0
        outcomes = pa.DictionaryArray.from_arrays(
            pa.array(np.asarray(self._outcome, dtype=np.int32)),
            pa.array([*self._codes], pa.string()),
        )
        columns = {
            "place": pa.array(np.arange(len(start))),
            "start_ms": pa.array(start - begin),
            "first_byte_ms": pa.array(np.asarray(self._first) - begin),
            "end_ms": pa.array(np.asarray(self._end) - begin),
            "bytes": pa.array(np.asarray(self._bytes)),
            "outcome": outcomes.cast(pa.string()),
        }
        return pa.table(columns).cast(declared_schema(TABLE, REQUEST))

    def told(self, settings: Mapping[str, str], instants_known: bool = True) -> Told:
        """Return what the requests say together.

        A percentile is left out that they are too few for. Without ``instants_known`` their starts
        are too coarse to say how long the load was.
        """
        table = self.table()
        start, end = (table[name].to_numpy() for name in ("start_ms", "end_ms"))
        duration_s = float(end.max() - start.min()) / 1e3 if instants_known else math.nan
        return Told(
            requests=len(self),
            failures=self.failures,
            duration_s=duration_s,
            throughput_rps=len(self) / duration_s if duration_s > 0 else math.nan,
            times_ms=statistics_of(end - start),
            rows=table,
            settings=settings,
        )


def statistics_of(times: np.ndarray) -> dict[str, float]:
    """Return statistics of the times of requests, each only where there are enough of them."""
    found = percentiles_of(times, OF_LOADS)
    return {
        "mean": float(times.mean()),
        "min": float(times.min()),
        **{share_name(share): value for share, value in found.items()},
        "max": float(times.max()),
    }
