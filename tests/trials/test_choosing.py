"""The choice of a design by the response times."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perflab import systems
from perflab.analysis.doubts.memory_growth import GROWS_IDLE
from perflab.analysis.noise import STARTING
from perflab.errors import LoadError, ParameterError, ServiceFailed
from perflab.host.meters import CgroupMeter, ProcessTable, ProcessTreeMeter
from perflab.load.workload import ClosedLoop, OpenLoop, Stage
from perflab.recordings.design import Design
from perflab.stacks.backend import used_by
from perflab.stacks.shared_resources import Held, held_by
from perflab.trials.choosing import (
    Pace,
    chosen,
    needed_slice_ms,
    refuse_busy_client,
    settle,
    to_pause,
    works_after_start,
)
from tests.support.children import SLEEPS, child
from tests.trials.fakes import Residents, bench, plan

AUTO = Design(kind="auto")
CLOSED = ClosedLoop(users=2, duration_s=30.0, warmup_s=5.0, think_time_s=0.1)
OPEN = OpenLoop(stages=(Stage(rate=50, duration_s=20.0),), warmup_s=10.0)


@pytest.mark.parametrize(
    ("response_ms", "wait_ms", "backend", "slice_ms"),
    [
        (1.0, 0.0, "process", 50.0),
        # Requests may end in three quarters of a gap, which is a fifth of the slice.
        (9.0, 0.0, "process", 60.0),
        (45.0, 0.0, "process", 300.0),
        (1.0, 0.0, "docker", 200.0),
        # Each user sends five times in a slice.
        (2.0, 20.0, "process", 110.0),
        (float("inf"), 0.0, "process", float("inf")),
    ],
)
def test_a_slice_is_as_short_as_responses_and_users_allow(
    response_ms: float, wait_ms: float, backend: str, slice_ms: float
) -> None:
    assert needed_slice_ms([Pace(0.1), Pace(response_ms, wait_ms)], backend) == slice_ms


def test_short_responses_give_slices_and_long_ones_whole_trials() -> None:
    short = chosen(AUTO, {"a": Pace(2.0), "b": Pace(3.0)}, "process")
    assert (short.kind, short.slice_ms) == ("slices", 50.0)
    assert short.why == "95% of the responses came within 3 ms"
    slow = chosen(AUTO, {"a": Pace(2.0), "b": Pace(46.0)}, "process")
    assert slow.kind == "trials"
    assert "too slow to take turns (slices of 310 ms)" in slow.why
    # A user who asks for slices gets them, as long as needed.
    slices = chosen(Design(kind="slices"), {"a": Pace(2.0), "b": Pace(46.0)}, "process")
    assert (slices.kind, slices.slice_ms) == ("slices", 310.0)
    paces = {"a": Pace(2.0), "b": Pace(float("inf"))}
    silent = chosen(AUTO, paces, "process")
    assert (silent.kind, silent.why) == (
        "trials",
        "no request of the first short load was answered",
    )
    assert chosen(Design(kind="slices"), paces, "process").kind == "slices"


def test_a_client_that_would_be_the_limit_ends_the_run_before_its_first_block() -> None:
    refuse_busy_client({"a": Pace(1.0, client_share=0.89, rate=9), "b": Pace(1.0)})
    refuse_busy_client({"a": Pace(1.0), "silent": Pace(math.inf, client_share=1.0)})
    with pytest.raises(LoadError, match=r"on b it used 97% of its cores at 20,000 requests/s") as e:
        refuse_busy_client({"a": Pace(1.0), "b": Pace(0.05, 0.0, 0.97, 20_000.0)})
    assert "perflab duel --rate 10000" in str(e.value)


@pytest.mark.parametrize("fresh_blocks", [0, 1])
def test_after_the_choice_services_are_as_fresh_as_in_every_block(
    tmp_path: Path, fresh_blocks: int
) -> None:
    residents = Residents()
    open_plan = plan(design=AUTO, fresh_blocks=fresh_blocks)
    settled = settle(bench(tmp_path, residents), open_plan, "process")
    assert settled.design.kind == "trials"
    assert residents.notes.count("start") == fresh_blocks


def test_custom_services_leave_the_design_open_and_a_length_needs_slices() -> None:
    custom = systems.experiment("custom_service")
    assert not custom.plan(custom.check({})).design.is_settled
    values: dict[str, Any] = {"slice_ms": 100}
    with pytest.raises(ParameterError, match="slice_ms = 100 needs design = slices"):
        custom.check(values)
    sliced = custom.plan(custom.check({**values, "design": "slices"}))
    assert sliced.design.slice_ms == 100
    # Who is paused is found out when services run.
    assert not sliced.design.is_settled


class Two(Residents):
    """Two processes that work for a fifth of the time, each the service of a treatment."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        super().__init__()
        self.pids = pids

    def active(self, name: str) -> Any:
        meter = ProcessTreeMeter(self.pids[name])
        return {"echo": SimpleNamespace(meter=lambda: meter)}


WORKS = """
print(flush=True)
while True:
    end = time.thread_time() + 0.02
    while time.thread_time() < end: pass
    time.sleep(0.08)
"""


@pytest.mark.parametrize(
    ("of_both", "code"), [(False, STARTING), (True, "stack.works_after_start")]
)
@pytest.mark.promise
def test_where_one_side_alone_works_after_its_start_its_answer_is_doubtful(
    tmp_path: Path, of_both: bool, code: str
) -> None:
    quiet = {"stderr": subprocess.DEVNULL}
    works = f"import time{WORKS}"
    with child(works, **quiet) as a, child(works if of_both else SLEEPS, **quiet) as b:
        pids = {"a": a.pid, "b": b.pid}
        remarks = works_after_start(bench(tmp_path, Two(pids)), plan())
    assert [remark.code for remark in remarks] == [code] * (1 + of_both)
    assert "of a core after its start, while nobody asks" in remarks[0].text


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.promise
def test_a_busy_service_is_paused_unless_it_shares_a_file_with_another(
    tmp_path: Path, shares: bool
) -> None:
    file = "orders" if shares else "orders-' + str(os.getpid()) + '"
    opens = f"import os, time; f = open('{tmp_path}/{file}', 'a')"
    quiet = {"stderr": subprocess.DEVNULL}
    with child(opens + WORKS, **quiet) as a, child(opens + "\n" + SLEEPS, **quiet) as b:
        pids = {"a": a.pid, "b": b.pid}
        held = {name: held_by([pid]) for name, pid in pids.items()}
        paused, awake, remarks = to_pause(bench(tmp_path, Two(pids)), plan(), held)
        assert (paused, bool(awake)) == ((() if shares else ("a",)), shares)
    (remark,) = remarks
    assert "a uses" in remark.text
    assert "of a core while nobody asks" in remark.text
    assert "it will answer otherwise later (--warmup 20)" in remark.text
    assert ("and is not paused because it shares" in remark.text) == shares


class Ended(Residents):
    """Services in containers that have ended: no control group is left to be read."""

    def active(self, _name: str) -> Any:
        launch = SimpleNamespace(port=1)
        return {"echo": SimpleNamespace(meter=lambda: CgroupMeter(0), launch=launch)}


@pytest.mark.promise
def test_a_container_that_ended_under_the_first_load_is_told_with_its_log(tmp_path: Path) -> None:
    ended = Ended(dies=ServiceFailed("echo", "its container exited with status 1", "planted"))
    with pytest.raises(ServiceFailed, match="planted"):
        settle(bench(tmp_path, ended), plan(design=AUTO), "docker")


def test_a_service_that_has_ended_adds_nothing_to_what_services_used() -> None:
    alive: Any = SimpleNamespace(meter=lambda: ProcessTreeMeter(os.getpid()))
    ended: Any = SimpleNamespace(meter=lambda: CgroupMeter(0))
    used = used_by([ended, alive], ProcessTable())
    assert used.cpu_ns > 0
    assert used.memory_bytes > 0
    assert used_by([ended], ProcessTable()).cpu_ns == 0


def test_memory_that_grows_while_nobody_asks_is_told(tmp_path: Path) -> None:
    grows = "import time; held = []\nwhile True: held.append(b'x' * (1 << 20)); time.sleep(0.1)"
    quiet = {"stderr": subprocess.DEVNULL}
    with child(f"print(flush=True)\n{grows}", **quiet) as a, child(SLEEPS, **quiet) as b:
        pids = {"a": a.pid, "b": b.pid}
        held = {name: Held() for name in pids}
        _, _, remarks = to_pause(bench(tmp_path, Two(pids)), plan(), held)
    (remark,) = (each for each in remarks if each.code == GROWS_IDLE)
    assert "the memory of a grows by" in remark.text
