"""A block whose trials share its time: all loads run at once, each in windows of its own.

Services and a load worker of every treatment are resident. Those that would disturb others are
paused while it is not their turn (:mod:`perflab.trials.choosing`). A service that treatments share
is never paused, and no trial records its CPU.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from perflab.errors import InstrumentFailed, LoadError, StackError
from perflab.instruments import Load
from perflab.load.clients.outcome import MEASURE, PAUSED, STAGES
from perflab.load.records.window_table import window_table
from perflab.load.workload.windows import time_within
from perflab.recordings import Reason, Remark
from perflab.recordings.columns import TURN_COLUMNS, TURNS
from perflab.stacks.backend import Instance
from perflab.stacks.residents import Residents
from perflab.statistics.in_words import as_share, counted
from perflab.statistics.quantiles import MAX_MOVED_SHARE
from perflab.trials.cpu_of_others import steal_ns
from perflab.trials.designs import Rounds
from perflab.trials.plan import Treatment
from perflab.trials.trial import (
    Bench,
    TrialSoFar,
    TrialTables,
    judged,
    losses_of,
    measure_after,
    prepare,
    send,
)
from perflab.trials.turns import TurnsTaken, take_turns

# By then all instruments have begun, and all load workers know the start.
AHEAD_NS = 1_000_000_000
# The share of a block's rounds that may be left out, because a turn began after its settling time.
MOST_LATE = 0.5
# Above this share of requests carried over into another turn, the trial gets a warning.
CARRIED_SHARE = 0.05
WAY_OUT = "take longer slices (slice_ms), or whole trials (design = trials)"


@dataclass
class _Part:
    """One treatment's trial of the block."""

    bench: Bench
    treatment: Treatment
    row: dict[str, Any]
    so_far: TrialSoFar = field(default_factory=TrialSoFar)
    measured: tuple[Load, list[str]] | None = None


def measure_block(
    benches: Mapping[str, Bench],
    treatments: Sequence[Treatment],
    rounds: Rounds,
    identities: Mapping[str, dict[str, Any]],
    paused: Collection[str] = (),
) -> list[TrialTables]:
    """Measure the trials of a block together; return their tables in the order of treatments.

    Where one trial fails, all fail: the others ran under wrong conditions. Every treatment has a
    bench with its own generator, and columns (``identities``) that identify the trial. Those that
    are ``paused`` have their own services awake in their turns only.
    """
    started_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    parts = [
        _Part(
            benches[item.name],
            item.model_copy(update={"workload": rounds.workload(item.name, item.workload)}),
            {**identities[item.name], "started_at": started_at},
        )
        for item in treatments
    ]
    residents = parts[0].bench.residents
    try:
        return _measured(parts, rounds, residents, paused)
    except (InstrumentFailed, StackError, LoadError) as error:
        for part in parts:
            part.bench.generator.close()
        return [
            part.so_far.failed(part.row, [error], losses_of(residents, part.treatment.name))
            for part in parts
        ]


def _measured(
    parts: Sequence[_Part], rounds: Rounds, residents: Residents, paused: Collection[str]
) -> list[TrialTables]:
    for part in parts:
        prepare(part.bench, part.treatment, part.so_far)
    began_ns, stolen_ns = time.monotonic_ns(), steal_ns()
    services = services_of_each(residents, rounds.treatments)
    to_pause = {name: own if name in paused else [] for name, own in services.items()}
    turns = _load_in_turns(parts, rounds, to_pause)
    late = late_rounds(turns.table, rounds)
    steal_share = (steal_ns() - stolen_ns) / (time.monotonic_ns() - began_ns)
    for part in parts:
        residents.check_alive(part.treatment.name)
    losses = [losses_of(residents, part.treatment.name) for part in parts]
    time.sleep(max(part.bench.cooldown_s for part in parts))
    for part in parts:
        measure_after(part.so_far)
    all_tables = []
    for part, losses_of_part in zip(parts, losses, strict=True):
        tables = _tables(part, turns, late, rounds, losses_of_part, steal_share)
        name = part.treatment.name
        for node, instance in residents.active(name).items():
            if instance not in services[name]:
                # The CPU of a shared service is nobody's.
                tables.row[f"cpu_share_{node}"] = float("nan")
        all_tables.append(tables)
    # Before, an instrument of any part may fail, and then all parts keep their records.
    for part in parts:
        part.so_far.discard()
    return all_tables


def services_of_each(residents: Residents, names: Sequence[str]) -> dict[str, list[Instance]]:
    """Return the services that each treatment has for itself, by treatment."""
    serving = {name: residents.active(name) for name in names}
    users = Counter(id(item) for active in serving.values() for item in active.values())
    return {
        name: [item for item in active.values() if users[id(item)] == 1]
        for name, active in serving.items()
    }


def _load_in_turns(
    parts: Sequence[_Part], rounds: Rounds, services: Mapping[str, Sequence[Instance]]
) -> TurnsTaken:
    """Send all loads while services take turns; return the turns.

    Raises the error of the first load that failed, when all services are awake and no load runs.
    """
    start_ns = time.monotonic_ns() + AHEAD_NS
    broken = threading.Event()

    def send_load(part: _Part) -> None:
        try:
            part.measured = send(part.bench, part.treatment, part.so_far, start_ns)
        except BaseException:
            broken.set()
            raise

    with ThreadPoolExecutor(len(parts)) as threads:
        futures = [threads.submit(send_load, part) for part in parts]
        turns = take_turns(rounds, services, start_ns, broken.is_set)
    for future in futures:
        future.result()
    return turns


def late_rounds(turns: pd.DataFrame, rounds: Rounds) -> list[int]:
    """Return the rounds in which a turn of any treatment began after its settling time.

    They are left out on all sides: other programs delayed the turn, and they may have slowed it.
    """
    late = turns[turns["late_ns"] > rounds.settle_ms * 1e6]
    return sorted({int(number) for number in late["round"] if number >= rounds.warm})


def _tables(
    part: _Part,
    turns: TurnsTaken,
    late: Sequence[int],
    rounds: Rounds,
    losses: Sequence[Reason],
    steal_share: float,
) -> TrialTables:
    """Return the tables of one trial."""
    assert part.measured is not None
    (load, meters), name = part.measured, part.treatment.name
    pauses = turns.pauses[name]
    # Where too many rounds are late the trial is refused, and shows all that it measured.
    are_few = len(late) <= MOST_LATE * (rounds.rounds - rounds.warm)
    result = load.result.without_windows(late if are_few else ())
    load = replace(load, result=replace(result, pauses=pauses))
    own = turns.table[turns.table["treatment"] == name]
    table = turn_table(window_table(load.result), own)
    # Each treatment rests at other times, so the CPU of idle services has no single number.
    shares = {"idle_cpu_share": float("nan"), "steal_share": steal_share}
    paused_share = load.result.response_times.paused_share
    reasons, warnings = judged_turns(table, late, rounds, paused_share)
    tables = judged(
        part.row, part.treatment, part.so_far, load, meters, shares, [*losses, *reasons]
    )
    tables.row["warnings"] = [*tables.row["warnings"], *warnings]
    tables.others[TURNS] = table
    example = ""
    if tables.requests is not None:
        example = failed_in_pause(tables.requests, list(turns.pauses.values()))
        tables.requests = told_apart(tables.requests, pauses)
    # Late turns are the machine's fault: they leave the services whole.
    return replace(tables, services_whole=not losses, failed_in_pause=example)


def failed_in_pause(requests: pd.DataFrame, pauses: Iterable[np.ndarray]) -> str:
    """Return the error of a request that failed while a service was paused; else nothing.

    The paused service may hold what the request needs, whichever side it belongs to.
    """
    failed = requests[(requests["error"] != "") & (requests["done_ns"] > 0)]
    for spans in filter(len, pauses):
        met = time_within(failed["planned_ns"].to_numpy(), failed["done_ns"].to_numpy(), spans) > 0
        if met.any():
            return str(failed["error"][met].iloc[0])
    return ""


def turn_table(windows: pd.DataFrame, turns: pd.DataFrame) -> pd.DataFrame:
    """Return the turns of a treatment that count, by its windows and the turns that were taken."""
    table = windows.rename(columns={"window": "round"})
    late = turns.set_index("round")["late_ns"]
    table["late_ns"] = late.reindex(table["round"]).fillna(0).to_numpy(np.int64)
    return table[list(TURN_COLUMNS)].astype(dict(TURN_COLUMNS))


def told_apart(requests: pd.DataFrame, pauses: np.ndarray) -> pd.DataFrame:
    """Return requests for the record; those that waited while the service was paused are marked.

    Such a request has the stage ``paused``: nobody knows how long it would have taken, so no
    percentile of the record contains it.
    """
    recorded = requests.drop(columns="window", errors="ignore")
    done_ns = recorded["done_ns"].to_numpy()
    paused_ns = time_within(recorded["planned_ns"].to_numpy(), done_ns, pauses)
    is_paused = (paused_ns > 0) & (recorded["stage"] == STAGES[MEASURE])
    recorded["stage"] = recorded["stage"].astype(str).mask(is_paused, PAUSED)
    return recorded


def judged_turns(
    table: pd.DataFrame, late: Sequence[int], rounds: Rounds, paused_share: float = 0.0
) -> tuple[list[Reason], list[Remark]]:
    """Return the reasons and warnings that the turns of a trial give.

    ``late`` are the rounds that were left out (:func:`late_rounds`), and ``paused_share`` is the
    share by which pauses could have raised the trial's mean response time.
    """
    reasons, warnings = [], []
    count = rounds.rounds - rounds.warm
    text = (
        f"{len(late)} of {counted(count, 'round')} do not count, because a turn began more than "
        f"{rounds.settle_ms:g} ms late: other programs used the machine"
    )
    if len(late) > MOST_LATE * count:
        reasons.append(Reason(code="turns.late", text=text))
    elif late:
        warnings.append(Remark(code="turns.late", text=text))
    finished = max(1, int(table["finished"].sum()))
    carried = int(table["carried_over"].sum()) / finished
    if paused_share > MAX_MOVED_SHARE:
        text = (
            f"{as_share(carried)} of the requests were under way when their service was paused, "
            f"which made them up to {as_share(paused_share)} longer on average: {WAY_OUT}"
        )
        reasons.append(Reason(code="turns.paused", text=text))
    elif carried > CARRIED_SHARE:
        text = (
            f"{as_share(carried)} of the requests were under way when their slice ended, and ended "
            f"in a later slice: {WAY_OUT}"
        )
        warnings.append(Remark(code="turns.carried_over", text=text))
    return reasons, warnings
