"""Whole runs: finished, interrupted, killed and resumed.

A whole run on the process backend is quick, so that `make test` has a real one.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from perflab import api
from perflab.errors import RunInterrupted
from perflab.host.lock import holder
from perflab.paths import project_root, runs_dir
from perflab.recordings import Run
from perflab.stacks import cleanup
from perflab.systems import experiment
from perflab.trials.client import conduct
from perflab.trials.plan import Order
from perflab.trials.progress import Event, LoadProgress, Note, TrialDone
from tests.stacks.asking import children_running, wait_until

SMALL = {
    "blocks": 2, "requests": 60, "warmup_requests": 10, "concurrency": 5, "workers": 1,
    "pool_size": 4, "seed": 7, "round_trip_ms": 0, "pool_minconn": "max",
}  # fmt: skip


def order_of(backend: str = "process", **changes: object) -> Order:
    chosen = experiment("sync_vs_async")
    plan = chosen.plan(chosen.check({**SMALL, **changes}))
    return Order(plan=plan, backend=backend, runs=runs_dir())


def echo_order(**changes: object) -> Order:
    """Return the order of a run of one small service, for promises about any service."""
    chosen = experiment("client_overhead")
    small = {"blocks": 2, "client": ["lean"], "rate": [100, 200], "duration_s": 0.3, "seed": 7}
    plan = chosen.plan(chosen.check({**small, **changes}))
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
