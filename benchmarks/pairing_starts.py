"""One start of two treatments' services, loaded in the windows of some rounds."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import bench
import numpy as np
import pandas as pd
from pairing_subjects import Subject

from perflab.analysis.treatments.rounds import cpu_per_request_us, ratios_of_rounds
from perflab.errors import AnalysisError
from perflab.host.placing import placement
from perflab.load.generator import Generator
from perflab.load.selfcheck import check
from perflab.load.windows import Window, Windows
from perflab.stacks.backend import Instance
from perflab.stacks.choice import choose
from perflab.stacks.residents import Residents
from perflab.trials.rounds import Rounds
from perflab.trials.turns import idle_share, take_turns

FIRST, SECOND = "first", "second"
RESPONSES = ("throughput", "CPU per request", "mean response time")
AHEAD_NS, IDLE_S = 500_000_000, 0.5


@contextmanager
def generators() -> Iterator[dict[str, Generator]]:
    """Keep a load worker for each treatment, both on the client's core."""
    made = {name: Generator([bench.cores()[1]], {}) for name in (FIRST, SECOND)}
    try:
        for each in made.values():
            each.start()
        yield made
    finally:
        for each in made.values():
            each.close()


@contextmanager
def started(subject: Subject, case: str) -> Iterator[Residents]:
    """Start both treatments' services afresh."""
    plans = dict(zip((FIRST, SECOND), subject.plans[case], strict=True))
    residents = Residents(choose("process"), plans, placement(), f"pairing-{os.getpid()}")
    residents.prepare()
    residents.start()
    try:
        yield residents
    finally:
        residents.stop()


def own_services(residents: Residents) -> dict[str, list[Instance]]:
    """Return the services that each treatment has for itself."""
    serving = {name: residents.active(name) for name in (FIRST, SECOND)}
    ports = {name: {each.launch.port for each in own.values()} for name, own in serving.items()}
    shared = ports[FIRST] & ports[SECOND]
    return {
        name: [each for each in own.values() if each.launch.port not in shared]
        for name, own in serving.items()
    }


@dataclass
class Start:
    """What one start of the services showed: log ratios of rounds by response; why it may not."""

    ratios: dict[str, np.ndarray]
    reasons: list[str]
    carried_over: float


def measure(subject: Subject, case: str, rounds: Rounds, workers: dict[str, Generator]) -> Start:
    """Start the services, load them in the windows of some rounds, and return the ratios."""
    with started(subject, case) as residents:
        urls = {name: _warmed(residents, subject, name, workers) for name in rounds.treatments}
        own = own_services(residents)
        # Warming the second up has paused the first.
        for instance in (each for services in own.values() for each in services):
            instance.resume()
        idle = {name: idle_share(services, IDLE_S) for name, services in own.items()}
        loads = {
            name: subject.load(rounds.windows(name), rounds.length_s) for name in rounds.treatments
        }
        start_ns = time.monotonic_ns() + AHEAD_NS
        with ThreadPoolExecutor(len(loads)) as threads:
            begun = {
                name: threads.submit(workers[name].run, load, urls[name], start_ns=start_ns)
                for name, load in loads.items()
            }
            taken = take_turns(rounds, own, start_ns)
            results = {
                name: replace(each.result(), pauses=taken.pauses[name])
                for name, each in begun.items()
            }
    tables = {
        name: _by_round(
            subject.table(result, rounds.windows(name).instants(start_ns)),
            taken.table[taken.table["treatment"] == name],
            rounds,
            idle[name],
            subject.arriving_s,
        )
        for name, result in results.items()
    }
    reasons = [
        each.text for name, result in results.items() for each in check(result, loads[name]).reasons
    ]
    for result in results.values():
        result.discard()
    return _compared(tables, reasons)


def _warmed(
    residents: Residents, subject: Subject, name: str, workers: dict[str, Generator]
) -> str:
    """Warm a treatment up, its settings checked, and return its address."""
    residents.activate(name)
    url = f"http://127.0.0.1:{residents.instance(name, subject.node).launch.port}"
    whole = Windows(spans=(Window(start_s=0.0, end_s=subject.warmup_s),))
    workers[name].run(subject.load(whole, subject.warmup_s), url).discard()
    return url


def _compared(tables: dict[str, pd.DataFrame], reasons: list[str]) -> Start:
    over, every = (
        sum(int(table[column].sum()) for table in tables.values())
        for column in ("carried_over", "finished")
    )
    ratios = {}
    try:
        for name in RESPONSES:
            ratios[name] = ratios_of_rounds(tables[SECOND][name], tables[FIRST][name])
    except AnalysisError as error:
        reasons.append(str(error))
    if not all(len(each) for each in ratios.values()):
        reasons.append("no round has a value on both sides")
    return Start(ratios, reasons, over / max(1, every))


def _by_round(
    table: pd.DataFrame, taken: pd.DataFrame, rounds: Rounds, idle: float, arriving_s: float
) -> pd.DataFrame:
    """Return the responses of each round.

    There are none of a turn that came too late to be let settle, and, but for a single round, of
    those in which users still arrive.
    """
    own = taken.sort_values("round").reset_index(drop=True)
    table["throughput"] = table["throughput_rps"]
    table["mean response time"] = table["mean_ms"]
    loaded_s = np.full(len(own), rounds.slice_ms / 1e3)
    table["CPU per request"] = cpu_per_request_us(
        own["cpu_ns"], table["finished"], own["awake_ns"] / 1e9, loaded_s, idle
    )
    late = own["late_ns"] > rounds.settle_ms * 1e6
    arriving = (own["round"] * rounds.slice_ms < arriving_s * 1e3) & (rounds.rounds > 1)
    table.loc[late | arriving, list(RESPONSES)] = math.nan
    return table
