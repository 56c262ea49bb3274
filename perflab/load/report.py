"""A finished load in numbers, as one object; ``summary_table`` shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from perflab.load.chunk_times import remarks as of_streams
from perflab.load.chunk_times import streams, times_of_chunks
from perflab.load.columns import template_names
from perflab.load.failure_causes import causes, stop_shown
from perflab.load.objectives import Objective
from perflab.load.outcome import ERRORS, MEASURE
from perflab.load.result import LoadResult
from perflab.load.selfcheck import SelfCheck
from perflab.load.times import Number, Times, known, shown, times_of
from perflab.load.trend import response_trend
from perflab.load.workload import OpenLoop, Workload
from perflab.percentiles import OF_TRIALS, Bound, needed_n, percentiles_of
from perflab.recordings.reasons import Remark


def percentiles_ms(values_ns: np.ndarray, shares: Sequence[float]) -> dict[str, float | None]:
    """Return percentiles in ms; None where the sample is too small to have one."""
    percentiles = percentiles_of(values_ns, shares)
    return {f"p{share:g}": known(value / 1e6) for share, value in percentiles.items()}


def summary(result: LoadResult, workload: Workload, judgement: SelfCheck) -> dict[str, Any]:
    """Return what a load showed, over the requests of its measure stage.

    Times are those of successes, in ms: ``response_time_ms`` from the planned instant,
    ``service_time_ms`` from sending. Of what requests that were cut off before their end could move
    they hold None, and ``response_time_at_least_ms`` what it is at least; where more than a tenth
    may be the client's own time, ``response_time_client_ms`` says how much. For throughput see
    :attr:`LoadResult.throughput_rps`; ``duration_s`` is from the first planned instant to the last
    end. ``reasons`` and ``warnings`` are objects with a code, a side and a text; the reasons are
    among the warnings too.
    """
    errors = result.measured(lambda rows: rows["error"])
    total, succeeded = len(errors), int((errors == 0).sum())
    response = times_of(result)
    streamed = times_of_chunks(result)
    seconds = _seconds(result)
    received = int(result.measured(lambda rows: rows["bytes"]).sum())
    counts = np.bincount(errors, minlength=len(ERRORS))
    statuses, status_counts = np.unique(
        result.measured(lambda rows: rows["status"]), return_counts=True
    )
    objectives = [judged(each, result) for each in workload.objectives]
    return {
        "requests": total,
        "errors": total - succeeded,
        "errors_by_class": {
            ERRORS[code]: int(count) for code, count in enumerate(counts) if code and count
        },
        "errors_by_cause": [asdict(cause) for cause in causes(result)],
        "statuses": {
            str(status): int(count)
            for status, count in zip(statuses, status_counts, strict=True)
            if status
        },
        "duration_s": seconds,
        "throughput_rps": known(result.throughput_rps),
        "offered_rps": _offered(total, result, workload),
        "bytes_received": received,
        "bytes_per_s": received / seconds if seconds else None,
        **shown("response_time", response.numbers()),
        **shown("service_time", times_of(result, "sent_ns").numbers()),
        **streams(streamed),
        "by_name": by_name(result),
        # A queue that builds up; response times that fall are no growth.
        "response_growth_ms_per_s": max(0.0, response_trend(result).ms_per_s),
        "generator_lag_ms": percentiles_ms(
            result.measured(lambda rows: rows["started_ns"] - rows["planned_ns"]), (50, 99)
        ),
        **_waits(times_of(result, "started_ns", "sent_ns").numbers((50, 99))),
        "connections_opened": result.connections_opened,
        "client_cpu_us_per_request": judgement.cpu_us_per_request,
        "client_cpu_share": judgement.cpu_share,
        "client_real_time": result.real_time,
        "client_run_delay_share": judgement.run_delay_share,
        "loop_delay_p99_ms": judgement.loop_delay_p99_ms,
        "client_mean_late_ms": judgement.mean_late_ms,
        "client_stalled_share": judgement.stalled_share,
        "client_steal_share": judgement.steal_share,
        "censored": judgement.censored,
        "kernel": dict(result.kernel),
        "littles_law_ratio": known(judgement.littles_law_ratio),
        "unsent": result.unsent,
        "capped": result.capped,
        "stopped": result.stopped,
        **stop_shown(result),
        "objectives": objectives,
        "valid": judgement.valid,
        "reasons": [each.model_dump() for each in judgement.reasons],
        "warnings": [
            each.model_dump()
            for each in (
                *judgement.reasons,
                *judgement.warnings,
                *_warnings(total, succeeded, objectives),
                *_late(result.successes_after, succeeded),
                *of_streams(streamed),
            )
        ],
    }


def _warnings(total: int, succeeded: int, objectives: Sequence[Mapping[str, Any]]) -> list[Remark]:
    remarks = []
    if succeeded < total:
        text = "times are those of successful requests only"
        remarks.append(Remark(code="load.successes_only", text=text))
    small = [f"p{share}" for share in OF_TRIALS if succeeded < needed_n(share)]
    if small:
        text = f"n too small for {', '.join(small)} (n = {succeeded})"
        remarks.append(Remark(code="load.small_sample", text=text))
    for each in objectives:
        if each["held"] is False:
            text = f"the objective {each['objective']} was missed"
            remarks.append(Remark(code="objective.missed", text=text))
        elif each["held"] is None:
            text = f"the objective {each['objective']} cannot be judged: {each['why']}"
            remarks.append(Remark(code="objective.undecided", text=text))
    return remarks


def _late(after: int, succeeded: int) -> list[Remark]:
    """Return a warning where throughput says little, because most answers came too late for it."""
    if 2 * after <= succeeded:
        return []
    text = f"{after} of {succeeded} successes were done after the last request was planned"
    return [Remark(code="load.late_answers", text=f"{text}: throughput leaves them out")]


def by_name(result: LoadResult) -> list[dict[str, Any]]:
    """Return a row for every name under which scripted users sent requests, by name."""
    codes: dict[str, dict[int, int]] = {}
    for worker in range(len(result.rows)):
        for code, name in enumerate(template_names(result.folder / str(worker))):
            codes.setdefault(name, {})[worker] = code
    table = []
    for name, by_worker in sorted(codes.items()):
        parts = [
            rows[rows["template"] == code]
            for rows, code in ((result.rows[worker], code) for worker, code in by_worker.items())
        ]
        every = np.concatenate(parts)
        own = every[every["stage"] == MEASURE]
        response = times_of(result, chosen=by_worker)
        table.append(
            {
                "name": name,
                "requests": len(own),
                "errors": int((own["error"] != 0).sum()),
                "throughput_rps": known(result.rate([every])),
                "bytes_received": int(own["bytes"].sum()),
                **shown("response_time", response.numbers()),
            }
        )
    return table


def _seconds(result: LoadResult) -> float:
    """Return the time from the first planned instant to the last end."""
    done = result.measured(lambda rows: rows["done_ns"])
    if not len(done):
        return 0.0
    begin_ns = int(result.measured(lambda rows: rows["planned_ns"]).min())
    return float(max(int(done.max()), result.end_ns) - begin_ns) / 1e9


def _offered(total: int, result: LoadResult, workload: Workload) -> float | None:
    """Return the rate of planned instants of an open loop."""
    if not isinstance(workload.arrivals, OpenLoop) or total < 2:
        return None
    planned = result.measured(lambda rows: rows["planned_ns"])
    return float((total - 1) / (int(planned.max()) - int(planned.min())) * 1e9)


def _waits(numbers: Mapping[str, Number]) -> dict[str, dict[str, float | None]]:
    """Return the wait for a connection: of one that is open it is the client's own work alone."""
    waits = shown("connection_wait", {share: numbers[share] for share in ("p50", "p99")})
    del waits["connection_wait_client_ms"]
    return waits


def judged(objective: Objective, result: LoadResult) -> dict[str, Any]:
    """Judge an objective over the whole measure stage; where ``held`` is None, ``why`` says why."""
    times = _times(objective, result)
    number = Number(Bound(math.nan, math.nan))
    held, why = None, "nothing was streamed"
    if times is not None:
        number = times.numbers((objective.percentile,))[f"p{objective.percentile:g}"]
        held = _held(number, objective.below_ms)
        why = _why_unknown(objective, number, times) if held is None else ""
    return {
        "objective": objective.text,
        "percentile": objective.percentile,
        "below_ms": objective.below_ms,
        "found_ms": known(number.value),
        "at_least_ms": known(number.at_least),
        "held": held,
        "why": why,
    }


def _times(objective: Objective, result: LoadResult) -> Times | None:
    """Return the times that an objective is about; None of streams where nothing was streamed."""
    if objective.of == "response":
        return times_of(result)
    streamed = times_of_chunks(result)
    if streamed is None:
        return None
    return streamed.first if objective.of == "ttft" else streamed.gaps


def _held(number: Number, below_ms: float) -> bool | None:
    """Tell whether a time is below a limit: a bound, and what is partly the client's, never is."""
    if number.bound.low - number.client_ms > below_ms:
        return False
    return True if number.value <= below_ms else None


def _why_unknown(objective: Objective, number: Number, times: Times) -> str:
    if not math.isnan(number.at_least):
        return f"{len(times.elapsed)} requests were cut off before their end"
    if math.isnan(number.value):
        what = "gaps" if objective.of == "gap" else "successes"
        return f"{len(times.known)} {what} of {needed_n(objective.percentile)} needed"
    return f"up to {number.client_ms:.2g} ms of {number.value:.4g} ms are the client's own"
