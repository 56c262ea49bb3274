"""A load of several hosts: each of them is judged, and so are their clocks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perflab.load.host_part import HostPart, own_workload
from perflab.load.machine_counts import MachineUse
from perflab.load.merging import merged
from perflab.load.report import summary
from perflab.load.result import LoadResult
from perflab.load.selfcheck import check
from perflab.load.summary_table import table
from perflab.load.workload import ClosedLoop, Request, Workload
from tests.load.planted import BEGIN_NS, S, load_result

MANY, FEW = 20_000, 60


def work() -> Workload:
    """Return what both hosts were asked for; Little's law is silent about paced users."""
    arrivals = ClosedLoop(users=100, pacing_s=1, requests=MANY + FEW)
    return Workload(request=Request(), arrivals=arrivals)


def report() -> dict[str, Any]:
    return {
        "cpu_ns": S, "wall_ns": 100 * S, "run_delay_ns": 0, "unsent": 0, "start_ns": BEGIN_NS,
        "looks": {"woken_us": [], "late_ms": [], "began_ns": BEGIN_NS}, "lasted_ns": 100 * S,
        "capped": 0, "most_streams": 0, "stopped": "", "peak_memory_bytes": 1,
        "clock_step_ms": 0.0, "real_time": True, "first_errors": [],
    }  # fmt: skip


def part(name: str, first: int, **words: Any) -> HostPart:
    usual: dict[str, Any] = {"offset_ns": 5 * S, "error_ns": 400_000, "late_ns": 0}
    machine = MachineUse(1, 0.02 * first, {"tcp_resets": 1 + first})
    return HostPart(name, first, 1, **{**usual, **words}, machine=machine)


def load(folder: Path, late_ms: float = 0.0, **words: Any) -> LoadResult:
    """Return a load of the hosts one and two; two sent few requests, all of them late."""

    def late(rows: np.ndarray) -> None:
        rows["started_ns"] += round(late_ms * 1e6)
        rows["sent_ns"] += round(late_ms * 1e6)

    load_result(folder / "one", np.linspace(1, 99, MANY))
    load_result(folder / "two", np.linspace(1, 99, FEW), change=late)
    (folder / "all").mkdir()
    (folder / "one" / "0").rename(folder / "all" / "0")
    (folder / "two" / "0").rename(folder / "all" / "1")
    hosts = [part("one", 0), part("two", 1, **words)]
    machine = MachineUse.total([host.machine for host in hosts])
    watch: Any = SimpleNamespace(missed=(), reason="")
    return merged(folder / "all", [report(), report()], work(), machine, watch, 0, hosts)


def test_hosts_that_were_punctual_make_one_valid_load(tmp_path: Path) -> None:
    result = load(tmp_path)
    found = check(result, work())
    assert found.reasons == ()
    assert (result.cores, result.steal_share, result.kernel["tcp_resets"]) == (2, 0.02, 3)
    assert [len(each.rows[0]) for each in result.parts] == [MANY, FEW]
    shown = summary(result, work(), found)
    assert [(each["host"], each["first_worker"], each["requests"]) for each in shown["hosts"]] == [
        ("one", 0, MANY), ("two", 1, FEW),
    ]  # fmt: skip
    assert (shown["hosts"][1]["clock_offset_ms"], shown["hosts"][1]["clock_error_ms"]) == (5e3, 0.4)
    lines = [line.split() for line in table(shown).splitlines()]
    assert ["two", "1", "60", "0.400", "ms"] in lines


def test_a_late_host_does_not_hide_behind_the_others(tmp_path: Path) -> None:
    result = load(tmp_path, late_ms=60.0)
    found = check(result, work())
    assert found.lag_p99_ms == 0, "too few to be seen among all"
    told = [str(each) for each in found.reasons]
    assert told[0].startswith("two: generator lag p50 60.00 ms")
    assert all(each.startswith("two: ") for each in told)
    assert {each.side for each in found.reasons} == {"client"}


@pytest.mark.parametrize(("error_ms", "refused"), [(4.9, False), (5.1, True)])
def test_a_clock_that_is_not_known_well_enough_refuses_the_load(
    tmp_path: Path, error_ms: float, refused: bool
) -> None:
    found = check(load(tmp_path, error_ns=round(error_ms * 1e6)), work())
    told = [str(each) for each in found.reasons if each.code == "host.clock"]
    assert bool(told) == refused
    assert all(each.startswith("two: its clock is known to 5.1 ms only") for each in told)


def test_a_host_that_began_after_the_common_start_refuses_the_load(tmp_path: Path) -> None:
    (told,) = check(load(tmp_path, late_ns=20_000_000), work()).reasons
    assert (told.code, str(told)) == (
        "host.late_start", "two: began 20.0 ms after the common start",
    )  # fmt: skip


def test_a_host_is_judged_by_the_users_that_it_had() -> None:
    arrivals = ClosedLoop(users=8, requests=10)
    workload = Workload(request=Request(), arrivals=arrivals)
    # Users 0, 3 and 6 are the first worker's, 1, 4 and 7 the second's.
    parts = [own_workload(workload, 0, 2, 3), own_workload(workload, 2, 1, 3)]
    assert [each.arrivals.users for each in parts if isinstance(each.arrivals, ClosedLoop)] == [
        6, 2,
    ]  # fmt: skip
