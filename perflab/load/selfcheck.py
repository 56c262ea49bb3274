"""The generator judges itself: reasons why a trial may not enter a comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.load.generator import LoadResult

MAX_LAG_MS = 5.0
MAX_LAG_SHARE = 0.10
MAX_LOOP_DELAY_MS = 20.0
MAX_CLIENT_CPU = 0.85
MAX_ERROR_SHARE = 0.01
LITTLE_RANGE = (0.85, 1.10)


@dataclass(frozen=True)
class SelfCheck:
    """What the generator found about itself; empty ``reasons`` means valid."""

    lag_p50_ms: float
    lag_p99_ms: float
    loop_delay_p99_ms: float
    loop_delay_max_ms: float
    cpu_share: float
    cpu_us_per_request: float
    littles_law_ratio: float
    reasons: tuple[str, ...]


def check(result: LoadResult, users: int, expected: int, server_count: int) -> SelfCheck:
    """Judge one trial's load.

    Parameters
    ----------
    users : int
        Users of the closed loop, for Little's law.
    expected : int
        Acknowledged requests that the server must have counted (-1: it does not count).
    server_count : int
        What it did count.
    """
    measured = result.requests[result.requests["stage"] == "measure"]
    lag_ms = ((measured["started_ns"] - measured["planned_ns"]) / 1e6).to_numpy()
    response_ms = ((measured["done_ns"] - measured["planned_ns"]) / 1e6).to_numpy()
    wall_ns = max(1, result.end_ns - result.begin_ns)
    delays = np.array(result.loop_delay_ms or (0.0,))
    found = SelfCheck(
        lag_p50_ms=_quantile(lag_ms, 0.5),
        lag_p99_ms=_quantile(lag_ms, 0.99),
        loop_delay_p99_ms=float(np.quantile(delays, 0.99)),
        loop_delay_max_ms=float(delays.max()),
        cpu_share=result.cpu_ns / wall_ns / result.cores,
        cpu_us_per_request=result.cpu_ns / 1e3 / max(1, len(measured)),
        littles_law_ratio=littles_law_ratio(result, users),
        reasons=(),
    )
    reasons = [
        *_timing_reasons(found, _quantile(response_ms, 0.5)),
        *_count_reasons(result, measured, found, expected, server_count),
    ]
    return SelfCheck(**{**found.__dict__, "reasons": tuple(reasons)})


def littles_law_ratio(result: LoadResult, users: int) -> float:
    """Return throughput times mean response time over the number of users.

    Between the first and the last measured start all users are active, so without think time it
    must be 1 up to the edges of that window. Source: J. D. C. Little, Operations Research 9(3),
    1961.
    """
    window_ns = result.end_ns - result.begin_ns
    done = result.requests[
        (result.requests["done_ns"] > result.begin_ns)
        & (result.requests["done_ns"] <= result.end_ns)
    ]
    if done.empty or window_ns <= 0:
        return float("nan")
    response_ns = (done["done_ns"] - done["planned_ns"]).mean()
    return float(len(done) / window_ns * response_ns / users)


def _quantile(values: np.ndarray, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else float("nan")


def _timing_reasons(found: SelfCheck, median_ms: float) -> list[str]:
    reasons = []
    allowed_ms = max(MAX_LAG_MS, MAX_LAG_SHARE * median_ms)
    if found.lag_p99_ms > allowed_ms:
        reasons.append(
            f"generator lag p99 {found.lag_p99_ms:.1f} ms is above {allowed_ms:.1f} ms: "
            "the client, not the server, was late"
        )
    if found.loop_delay_p99_ms > max(MAX_LOOP_DELAY_MS, MAX_LAG_SHARE * median_ms):
        reasons.append(f"the client's event loop woke {found.loop_delay_p99_ms:.1f} ms late (p99)")
    if found.cpu_share > MAX_CLIENT_CPU:
        reasons.append(f"the client used {found.cpu_share:.0%} of its cores")
    return reasons


def _count_reasons(
    result: LoadResult,
    measured: pd.DataFrame,
    found: SelfCheck,
    expected: int,
    server_count: int,
) -> list[str]:
    reasons = []
    if result.unsent:
        reasons.append(f"{result.unsent} planned requests were never sent")
    errors = measured.loc[measured["error"] != "", "error"]
    if len(errors) > MAX_ERROR_SHARE * len(measured):
        kinds = ", ".join(f"{count} {name}" for name, count in errors.value_counts().items())
        reasons.append(f"{len(errors)} of {len(measured)} requests failed ({kinds})")
    low, high = LITTLE_RANGE
    if not low <= found.littles_law_ratio <= high:
        reasons.append(f"Little's law is off: ratio {found.littles_law_ratio:.2f}")
    if server_count >= 0 and server_count != expected:
        reasons.append(
            f"the server counted {server_count} writes, the client was told of {expected}"
        )
    return reasons
