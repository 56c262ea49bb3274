"""Sums up a finished load; ``summary_table.py`` shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from perflab.analysis.doubts.new_answers import Checked, risen, unseen
from perflab.load.checks import stalls
from perflab.load.checks.chunk_times import ChunkTimes, times_of_chunks
from perflab.load.checks.chunk_times import remarks as of_streams
from perflab.load.checks.failures import around_stop, causes
from perflab.load.checks.selfcheck import SelfCheck
from perflab.load.checks.trend import response_trend
from perflab.load.clients.outcome import MEASURE
from perflab.load.records.answers import ByName, answers_in, first_answers
from perflab.load.records.message_record import OF_CONNECTIONS
from perflab.load.records.result import LoadResult, per_second
from perflab.load.records.times import Number, Times
from perflab.load.summary import JudgedObjective, LoadSummary, NameSummary, TimesMs, known
from perflab.load.workload.arrivals import OpenLoop
from perflab.load.workload.workload import Objective, Workload
from perflab.recordings.schema import Reason, Remark
from perflab.statistics.in_words import counted
from perflab.statistics.quantiles import OF_TRIALS, needed_n, percentiles_of

UNSEEN = "load.unseen_answers"


def percentiles_ms(values_ns: np.ndarray, shares: Sequence[float]) -> dict[str, float | None]:
    """Return percentiles in ms; None where the sample is too small to have one."""
    percentiles = percentiles_of(values_ns, shares)
    return {f"p{share:g}": known(value / 1e6) for share, value in percentiles.items()}


def summary(
    result: LoadResult, workload: Workload, judgement: SelfCheck, checked: ByName | None = None
) -> LoadSummary:
    """Return what a load showed.

    Answers of kinds that none of the ``checked`` ones had (None: none of the first twenty of their
    name) make it invalid, unless each is held against an expected body.
    """
    errors = result.measured(lambda rows: rows["error"])
    total, succeeded = len(errors), int((errors == 0).sum())
    streamed = times_of_chunks(result)
    seconds = _seconds(result)
    received = int(result.measured(lambda rows: rows["bytes"]).sum())
    statuses, status_counts = np.unique(
        result.measured(lambda rows: rows["status"]), return_counts=True
    )
    objectives = tuple(judged(objective, result, streamed) for objective in workload.objectives)
    stop = around_stop(result)
    answers = {} if workload.is_judged else answers_in(result)
    reasons = (*judgement.reasons, *_unseen(result, answers, checked))
    # On an open connection the wait is the client's own work alone: its share is not shown.
    waits = {name: result.connection_waits.numbers((50, 99))[name] for name in ("p50", "p99")}
    return LoadSummary(
        requests=total,
        errors=total - succeeded,
        errors_by_cause=tuple(causes(result)),
        statuses={
            str(status): int(count)
            for status, count in zip(statuses, status_counts, strict=True)
            if status
        },
        duration_s=seconds,
        throughput_rps=known(result.throughput_rps),
        offered_rps=_offered(total, result, workload),
        bytes_received=received,
        bytes_per_s=received / seconds if seconds else None,
        response_time=TimesMs.of(result.response_times.numbers()),
        service_time=TimesMs.of(result.service_times.numbers()),
        **_streams(streamed),
        **_messages(result),
        by_name=by_name(result),
        # Growth shows a queue that builds up; falling response times are none.
        response_growth_ms_per_s=max(0.0, response_trend(result).ms_per_s),
        generator_lag_ms=percentiles_ms(
            result.measured(lambda rows: rows["started_ns"] - rows["planned_ns"]), (50, 99)
        ),
        connection_wait=TimesMs.of(waits, with_client=False),
        connections_opened=result.connections_opened,
        client_cpu_us_per_request=judgement.client_cpu_us_per_request,
        client_cpu_share=judgement.client_cpu_share,
        client_real_time=result.real_time,
        client_run_delay_share=judgement.run_delay_share,
        loop_delay_p99_ms=known(judgement.loop_delay_p99_ms),
        censored=judgement.censored,
        kernel=result.kernel,
        littles_law_ratio=known(judgement.littles_law_ratio),
        unsent=result.unsent,
        capped=result.capped,
        stopped=result.stopped,
        **({"stop": stop} if stop else {}),
        objectives=objectives,
        valid=not reasons,
        reasons=reasons,
        warnings=(
            *reasons,
            *judgement.warnings,
            *_risen(answers, checked or {}),
            *_warnings(total, succeeded, objectives),
            *_late(result),
            *of_streams(streamed),
        ),
        failures=tuple(result.failures),
    )


def _warnings(total: int, succeeded: int, objectives: Sequence[JudgedObjective]) -> list[Remark]:
    remarks = []
    if succeeded < total:
        text = "times are those of successful requests only"
        remarks.append(Remark(code="load.successes_only", text=text))
    small = [f"p{share}" for share in OF_TRIALS if total and succeeded < needed_n(share)]
    if small:
        text = f"too few successes for {', '.join(small)} (n = {succeeded})"
        remarks.append(Remark(code="load.small_sample", text=text))
    for objective in objectives:
        if objective.held is False:
            text = f"the objective {objective.objective} was missed"
            remarks.append(Remark(code="objective.missed", text=text))
        elif objective.held is None:
            text = f"the objective {objective.objective} cannot be judged: {objective.why}"
            remarks.append(Remark(code="objective.undecided", text=text))
    return remarks


def _late(result: LoadResult) -> list[Remark]:
    """Return a warning where most answers came too late to count for throughput."""
    done_ns = result.measured(lambda rows: rows["done_ns"][rows["error"] == 0])
    late, count = int((done_ns > result.end_ns).sum()), len(done_ns)
    if 2 * late <= count:
        return []
    text = f"throughput leaves out {late} of {count} successes: they ended after the last"
    return [Remark(code="load.late_answers", text=f"{text} request was planned")]


def _unseen(result: LoadResult, loaded: ByName, checked: ByName | None) -> Iterator[Reason]:
    """Yield a reason for each name whose answers are like none that was checked before them."""
    checks = first_answers(result) if loaded and checked is None else checked or {}
    for name, answers in loaded.items():
        before = Checked(checks.get(name, ()))
        if found := unseen(before, answers):
            whose = f"the answers to {name}" if name else "the answers"
            first, end = ("first ", "") if checked is None else ("", " to one user before the load")
            number = f"{first}{counted(round(before.number), 'answer')}{end}"
            text = found.sentence(whose, f"none of the {number} was like that")
            way_out = "If they are right, expect_body (--expect-body) says what each must hold"
            yield Reason(code=UNSEEN, side="server", text=f"{text}. {way_out}")


def _risen(loaded: ByName, checked: ByName) -> Iterator[Remark]:
    """Yield a warning for each name with answers that were rare before the load."""
    for name, answers in loaded.items():
        if found := risen(checked.get(name, ()), answers, ()):
            whose = f"the answers to {name}" if name else "the answers"
            yield Remark(code="load.risen_answers", text=found.sentence(whose, "look at it"))


def _messages(result: LoadResult) -> dict[str, Any]:
    """Return how many messages listeners got, their rate and delay; nothing without messages."""
    messages = result.messages
    if not len(messages):
        return {}
    in_time = (messages["at_ns"] >= result.begin_ns) & (messages["at_ns"] <= result.end_ns)
    came = messages[in_time & ~messages["kind"].isin(OF_CONNECTIONS)]
    count = int((came["direction"] == "received").sum())
    return {
        "messages_received": count,
        "messages_sent": len(came) - count,
        "messages_per_s": known(per_second(count, result.end_ns - result.begin_ns)),
        "message_delay": TimesMs.of(stalls.received(result).numbers()),
    }


def _streams(chunk_times: ChunkTimes | None) -> dict[str, Any]:
    """Return the numbers of a load's streams; none where nothing was streamed."""
    if chunk_times is None:
        return {}
    return {
        "first_chunk": TimesMs.of(chunk_times.first.numbers()),
        "chunk_gap": TimesMs.of(chunk_times.gaps.numbers()),
        "chunks": chunk_times.chunks,
        "chunks_per_s": known(chunk_times.per_s),
        "chunks_at_once_share": known(chunk_times.at_once_share),
    }


def by_name(result: LoadResult) -> tuple[NameSummary, ...]:
    """Return a row per name of scripted users' requests, sorted by name."""
    table = []
    for name, by_worker in sorted(result.codes.items()):
        rows_of = ((result.rows[worker], code) for worker, code in by_worker.items())
        all_rows = np.concatenate([rows[rows["template"] == code] for rows, code in rows_of])
        measured = all_rows[all_rows["stage"] == MEASURE]
        response = result.times("planned_ns", chosen=by_worker)
        table.append(
            NameSummary(
                name=name,
                requests=len(measured),
                errors=int((measured["error"] != 0).sum()),
                throughput_rps=known(result.rate([all_rows])),
                bytes_received=int(measured["bytes"].sum()),
                response_time=TimesMs.of(response.numbers()),
            )
        )
    return tuple(table)


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


def judged(
    objective: Objective, result: LoadResult, streamed: ChunkTimes | None
) -> JudgedObjective:
    """Judge an objective; where ``held`` is None, ``why`` says why it is undecided."""
    times: Times | None = result.response_times
    if objective.of != "response":
        first, gaps = (streamed.first, streamed.gaps) if streamed else (None, None)
        times = first if objective.of == "ttft" else gaps
    number = Number(math.nan, math.nan)
    held, why = None, "nothing was streamed"
    if times is not None:
        number = times.numbers((objective.percentile,))[f"p{objective.percentile:g}"]
        held = _held(number, objective.below_ms)
        why = _why_unknown(objective, number, times) if held is None else ""
    return JudgedObjective(
        objective=str(objective),
        percentile=objective.percentile,
        below_ms=objective.below_ms,
        found_ms=known(number.value),
        at_least_ms=known(number.at_least),
        held=held,
        why=why,
    )


def _held(number: Number, below_ms: float) -> bool | None:
    """Return whether a time is below a limit; None where a bound or the client's time hides it."""
    if number.without_client > below_ms:
        return False
    return True if number.high <= below_ms else None


def _why_unknown(objective: Objective, number: Number, times: Times) -> str:
    if len(times.failed) and number.high > objective.below_ms:
        return f"{len(times.failed)} requests failed, and may have taken longer"
    if not math.isnan(number.at_least):
        return f"{len(times.elapsed)} requests were cut off before their end"
    if math.isnan(number.value):
        unit = "gaps" if objective.of == "gap" else "successes"
        return f"{len(times.known)} {unit} of {needed_n(objective.percentile)} needed"
    return f"up to {number.client_ms:.2g} ms of {number.value:.4g} ms are the client's own"
