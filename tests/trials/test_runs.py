"""Whole runs: finished, interrupted, killed and resumed.

A whole run on the process backend is quick, so that `make test` has a real one. Any process of a
run may be killed: no service is left, no trial is lost, and it is named.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from perflab import api
from perflab.errors import RunInterrupted
from perflab.host.lock import holder, measurement_lock
from perflab.paths import project_root, runs_dir
from perflab.recordings import Run
from perflab.stacks import cleanup
from perflab.trials.client import conduct
from perflab.trials.plan import Order
from perflab.trials.progress import Event, LoadProgress, Note, TrialBegun, TrialDone
from tests.stacks.asking import children_running, wait_until
from tests.systems.planned import plan_of

SMALL = {
    "blocks": 2, "requests": 60, "warmup_requests": 10, "concurrency": 5, "workers": 1,
    "pool_size": 4, "seed": 7, "round_trip_ms": 0, "pool_minconn": "max",
}  # fmt: skip


def order_of(backend: str = "process", **changes: object) -> Order:
    plan = plan_of("sync_vs_async", **{**SMALL, **changes})
    return Order(plan=plan, backend=backend, runs=runs_dir())


def echo_order(**changes: object) -> Order:
    """Return the order of a run of one small service, for promises about any service."""
    small = {"blocks": 2, "client": ["lean"], "rate": [100, 200], "duration_s": 0.3, "seed": 7}
    plan = plan_of("client_overhead", **{**small, **changes})
    return Order(plan=plan, backend="process", runs=runs_dir())


def test_a_run_is_recorded_whole_on_each_backend(backend_name: str) -> None:
    told: list[Event] = []
    run = Run(conduct(order_of(backend_name), told.append))
    assert run.record.state == "finished"
    notes = [event.text for event in told if isinstance(event, Note)]
    assert any("2 blocks can decide nothing" in text for text in notes)
    assert run.record.backend == backend_name
    trials = run.trials()
    assert len(trials) == 4
    # A disturbance of the machine may cost a trial, which then has a reason; not all of them.
    assert (trials["state"] == "valid").any(), trials["reasons"].tolist()
    assert [state == "valid" for state in trials["state"]] == [
        len(reasons) == 0 for reasons in trials["reasons"]
    ]
    assert set(trials["state"]) <= {"valid", "invalid"}
    assert trials["requests"].tolist() == [60] * 4
    # The server's own count agrees with the client's, with the warm-up and the requests that kept
    # the load up.
    ids = trials["trial_id"].tolist()
    requests = run.requests(stage=None, trial_ids=ids)
    stages = requests.groupby(["trial_id", "stage"]).size().unstack().loc[ids]
    assert stages[["warmup", "measure"]].to_numpy().tolist() == [[10, 60]] * 4
    assert trials["server_count"].tolist() == stages.sum(axis=1).tolist()
    for row in trials.itertuples():
        assert row.flush_p50_us > 0
        assert 0 < row.cpu_share_inference < 4
        assert row.cpu_share_postgres > 0
        assert row.memory_postgres_bytes > 1e6
    samples = run.table("samples", ids)
    for (_, service), rows in samples.groupby(["trial_id", "service"]):
        assert (rows["cpu_ns"].diff().dropna() >= 0).all(), service
        seconds = (rows["t_ns"].max() - rows["t_ns"].min()) / 1e9
        assert len(rows) / max(seconds, 0.1) >= 10
    assert len(run.table("waits", ids)) > 0
    for service in ("inference", "postgres"):
        assert (trials[f"accept_drops_{service}"] == 0).all()
        assert (trials[f"core_wait_share_{service}"] >= 0).all()
    assert {"phase_commit_ms", "phase_pool_ms", "phase_app_ms"} <= set(requests.columns)
    text = (run.path / "run.json").read_text()
    assert "password" not in text.lower()
    order = json.loads(text)["order"]
    assert [trials["treatment"].tolist()[0:2], trials["treatment"].tolist()[2:4]] == order
    assert cleanup.everything() == []
    name = run.run_id.rpartition("-")[2]
    assert not [folder for folder in cleanup.orphaned_folders() if folder.name.startswith(name)]
    assert holder() is None


def test_an_interrupt_ends_the_trial_in_order_and_keeps_committed_ones() -> None:
    # A process that runs tests in parallel with others ignores SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    done = 0
    main = threading.main_thread().ident
    assert main is not None

    def show(event: Event) -> None:
        nonlocal done
        done += isinstance(event, TrialDone)
        if isinstance(event, LoadProgress) and done == 1:
            signal.pthread_kill(main, signal.SIGINT)
            done += 1

    # Long enough trials that one is under way when the interrupt comes.
    order = echo_order(duration_s=3)
    with pytest.raises(RunInterrupted, match="--resume"):
        conduct(order, show)
    run = api.runs()[-1]
    assert run.record.state == "interrupted"
    assert len(run.trials()) == 1
    assert cleanup.everything() == []
    assert holder() is None


OWNER = """
import sys
from pathlib import Path
from perflab.trials.client import conduct
from perflab.trials.conductor import Order
order = Order.model_validate_json(Path(sys.argv[1]).read_text())
conduct(order, lambda event: print(event.event, flush=True))
"""


@pytest.mark.slow
def test_after_kill_nothing_is_left_and_resume_repeats_no_finished_block(tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text(echo_order(blocks=3, fresh_blocks=0).model_dump_json())
    asker = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(file)], stdout=subprocess.PIPE, text=True,
        cwd=project_root(), stderr=subprocess.PIPE,
    )  # fmt: skip
    assert asker.stdout is not None
    trials_done = 0
    for line in asker.stdout:
        trials_done += line.strip() == "trial_done"
        if trials_done == 3:
            break
    (conductor,) = children_running("perflab.trials.conductor", asker.pid)
    reapers = children_running("perflab.stacks.reaper", conductor.pid)
    assert len(reapers) == 2
    for victim in (conductor, reapers[0]):
        victim.kill()
    _, printed = asker.communicate(timeout=60)
    assert f"conductor (pid {conductor.pid}), which runs the trials, was ended by SIGK" in printed
    wait_until(lambda: cleanup.everything() == [] and holder() is None)
    assert not psutil.wait_procs([conductor, *reapers], timeout=60)[1]
    run = api.runs()[-1]
    assert run.record.state == "running"
    before = set(run.trials()["trial_id"])
    assert len(before) >= 3
    resumed = api.run(run.record.experiment, {"resume": run.run_id})
    assert resumed.record.state == "finished"
    trials = resumed.trials()
    current = trials[~trials["superseded"]]
    assert len(current) == 6
    assert {"b000-p00-a0", "b000-p01-a0"} <= set(current["trial_id"])
    finished_before = len(before) // 2
    assert set(current[current["block"] >= finished_before + 1]["attempt"]) <= {0}
    assert len(resumed.record.sessions) == 2


WITHIN_S = 15.0


def first_process(service: str) -> psutil.Process:
    (running,) = [item for item in cleanup.everything() if item.service == service]
    return psutil.Process(int(running.identity))


def inference_workers() -> list[psutil.Process]:
    children = first_process("inference").children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def reapers() -> list[psutil.Process]:
    (conductor,) = children_running("perflab.trials.conductor", os.getpid())
    return children_running("perflab.stacks.reaper", conductor.pid)


# One of these processes is killed during the load of each trial.
VICTIMS: list[tuple[str, Callable[[], psutil.Process]]] = [
    ("a worker of the service", lambda: inference_workers()[0]),
    ("the service's master", lambda: first_process("inference")),
    ("the load worker", lambda: first_process("client")),
    ("a reaper", lambda: reapers()[0]),
]


@pytest.mark.slow
def test_a_killed_process_is_named_and_the_run_goes_on_with_whole_services() -> None:
    killed: list[psutil.Process] = []
    orphans: list[psutil.Process] = []
    notes: list[str] = []
    trial = 0

    def show(event: Event) -> None:
        nonlocal trial
        if isinstance(event, Note):
            notes.append(event.text)
        if isinstance(event, TrialBegun):
            trial = event.number
            # Services were started afresh: no process of the old ones runs any more.
            assert not [orphan for orphan in orphans if orphan.is_running()]
        if isinstance(event, LoadProgress) and len(killed) < trial:
            victim = VICTIMS[len(killed)][1]()
            orphans.extend([victim, *victim.children(recursive=True)])
            killed.append(victim)
            victim.kill()

    run = Run(conduct(order_of(requests=1200, workers=2), show))
    worker, master, loader, _ = (victim.pid for victim in killed)
    replaced, failed, unsent, clean = run.trials().to_dict("records")
    assert replaced["state"] == "invalid"
    assert replaced["reasons"][0].text.startswith(f"service 'inference' lost process {worker} (")
    assert failed["state"] == "failed"
    assert "service 'inference': was ended by SIGKILL" in failed["reasons"][0]
    assert f"pid {master}" not in str(notes)
    assert unsent["state"] == "failed"
    assert f"load worker died (pid {loader}): it was ended by SIGKILL" in unsent["reasons"][0]
    assert clean["state"] in ("valid", "invalid")
    assert "lost process" not in str(clean["reasons"])
    assert run.record.state == "finished"
    assert cleanup.everything() == []
    assert holder() is None


FAILING_STOP = """
from perflab.stacks.residents import Residents
from perflab.trials import conductor
def stop(residents):
    raise OSError("no space left")
Residents.stop = stop
conductor.main()
"""


@pytest.mark.slow
def test_services_that_a_run_could_not_stop_are_ended_all_the_same() -> None:
    order = echo_order(blocks=1, fresh_blocks=0)
    with subprocess.Popen(
        [sys.executable, "-c", FAILING_STOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, cwd=project_root(),
    ) as conductor:  # fmt: skip
        assert conductor.stdin is not None
        assert conductor.stderr is not None
        conductor.stdin.write(order.model_dump_json().encode() + b"\n")
        conductor.stdin.flush()
        assert b"no space left" in conductor.stderr.read()
    wait_until(lambda: cleanup.everything() == [], WITHIN_S)


@pytest.mark.slow
@pytest.mark.promise
def test_a_conductor_that_waits_for_the_host_ends_with_the_program_that_asked() -> None:
    order = order_of().model_copy(update={"wait_s": 20.0})
    with measurement_lock("another run"):
        conductor = subprocess.Popen(
            [sys.executable, "-m", "perflab.trials.conductor"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=project_root(),
        )  # fmt: skip
        assert conductor.stdin is not None
        assert conductor.stdout is not None
        conductor.stdin.write(order.model_dump_json().encode() + b"\n")
        conductor.stdin.flush()
        assert any(b"another run" in line for line in conductor.stdout)
        conductor.stdin.close()
        printed = conductor.stdout.read()
        conductor.stdout.close()
        assert conductor.wait(timeout=WITHIN_S) == 1
    assert b"the program that asked for it is gone" in printed
