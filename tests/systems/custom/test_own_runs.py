"""Duels of real services are measured by the conductor and leave nothing behind."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from perflab import api
from perflab.errors import WrongAnswer
from perflab.host import facts
from perflab.paths import services_dir
from perflab.reports.duels import other_answers
from perflab.reports.methods import method
from perflab.stacks import cleanup
from perflab.stacks.asking import status_of
from perflab.stacks.docker import images
from perflab.stacks.docker.engine import connect
from perflab.stacks.spec import load_service
from tests.stacks.asking import wait_until
from tests.systems.custom.test_variants import git, two_revisions

SMALL = {
    "blocks": 2, "duration_s": 0.5, "warmup_s": 0.1, "users": 1, "think_time_s": 0.002, "seed": 3,
}  # fmt: skip
COMMAND = "python3 server.py --port {port}"
EXAMPLE = services_dir() / "duel_example" / "server.py"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two revisions of the example, and an uncommitted change."""
    text, name = EXAMPLE.read_text(), "server.py"
    slower = text.replace("default=1000", "default=4000").replace('"world"', '"everybody"')
    folder = two_revisions(tmp_path / "repository", (name, text), (name, slower))
    (folder / name).write_text("not a program\n")
    return folder


def our_stacks() -> list[str]:
    return [stack.service for stack in cleanup.everything() if stack.kind == "run"]


@pytest.mark.slow
def test_two_revisions_take_turns_without_the_work_tree_and_leave_nothing_behind(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    monkeypatch.setenv("TMPDIR", str(raw))
    before, sources = git(repository, "status", "--porcelain"), facts.sources()
    counted = f"python3 -c 'import os; print(len(os.sched_getaffinity(0)))' > {tmp_path}/cores"
    run = api.run(
        "custom_service",
        {
            **SMALL, "variants": ["old=git:.@v1", "new=git:.@HEAD"], "folder": str(repository),
            "command": COMMAND, "prepare": f"test -f server.py && {counted} && touch prepared",
            "design": "slices", "slice_ms": 300, "duration_s": 1.0,
        },
    )  # fmt: skip
    assert run.record.state == "finished"
    assert int((tmp_path / "cores").read_text()) == len(os.sched_getaffinity(0))
    trials = run.trials().set_index("treatment")
    assert len(trials) == 4
    costs = trials.groupby(level=0)["service_cpu_us_per_request"].min()
    # Four times as much work takes more CPU even on a busy machine.
    assert costs["variant=new"] > 1.5 * costs["variant=old"]
    assert (trials["service_memory_bytes"] > 1e6).all()
    assert (trials["failure_share"] == 0).all()
    assert other_answers(run) == [
        "new and old give different answers: bodies of 23 and 19 bytes. They may not do the same "
        "work."
    ]
    for block in (0, 1):
        turns = run.table("turns", trials[trials["block"] == block]["trial_id"].tolist())
        # Each variant has a second of 240 ms windows; a late turn takes the round from both.
        first, second = turns.groupby("trial_id").size()
        assert first == second <= 5
        spans = turns.sort_values("begin_ns")[["begin_ns", "end_ns"]].to_numpy()
        assert (spans[1:, 0] >= spans[:-1, 1]).all()
    # A service is under load for a part of the time, so its CPU share is of that part.
    assert trials["cpu_share_new"].max() <= 1.1
    assert "take turns" in method(run)
    assert git(repository, "status", "--porcelain") == before
    assert "prepared" not in os.listdir(repository)
    assert git(repository, "worktree", "list").count("\n") == 0
    assert facts.sources() == sources
    assert our_stacks() == []
    assert [path.name for path in raw.glob("perflab-*")] == []
    assert any("not committed" in warning.text for warning in run.record.warnings)
    shutil.rmtree(next(run.path.glob("trials/b001-*")))
    assert api.run("custom_service", {"resume": run.run_id}).record.sessions[1:]
    assert run.problems == []


@pytest.mark.slow
def test_a_service_that_runs_already_is_measured_and_not_ended() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    served = subprocess.Popen([sys.executable, EXAMPLE, "--port", str(port)])
    try:
        wait_until(lambda: status_of(port, "/") == 200)
        url = f"url:http://127.0.0.1:{port}"
        run = api.run(
            "custom_service", {**SMALL, "blocks": 1, "variants": [f"a={url}", f"b={url}"]}
        )
        assert run.record.state == "finished"
        trials = run.trials()
        assert (trials["requests"] > 0).all()
        assert "service_cpu_us_per_request" not in trials
        assert any(
            "CPU and memory are not known" in warning.text for warning in run.record.warnings
        )
        assert served.poll() is None
    finally:
        served.kill()
        served.wait()


@pytest.mark.slow
def test_a_variant_with_another_answer_ends_the_run_at_once() -> None:
    with pytest.raises(
        WrongAnswer, match=r"variant '(old|new)' gives another answer than expected"
    ) as caught:
        api.run("custom_service", {**SMALL, "expect_body": "goodbye"})
    assert "the answer to GET / does not contain 'goodbye' ('" in str(caught.value)
    assert "expect_body\nits last log lines:\n  | " in str(caught.value)
    run = api.runs()[-1]
    assert (run.record.state, run.record.reason) == ("failed", str(caught.value))
    assert len(run.trials()) == 0, "no trial, and so no start afresh after it"
    assert our_stacks() == []


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.parametrize("backend_name", ["docker"], indirect=True, scope="module")
@pytest.mark.usefixtures("backend_name")
def test_folders_with_dockerfiles_are_built_and_measured(tmp_path: Path) -> None:
    base, _ = images.ensure(connect(), load_service("echo"))
    folders = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "server.py").write_text(EXAMPLE.read_text())
        (folder / "Dockerfile").write_text(
            f"FROM {base}\n"
            "COPY ca/ /usr/local/share/ca-certificates/\n"
            "COPY server.py /server.py\n"
            'CMD ["sh", "-c", "exec python3 /server.py --port $PORT"]\n'
        )
        folders.append(f"{name}=dockerfile:{name}")
    run = api.run(
        "custom_service", {**SMALL, "blocks": 1, "variants": folders, "folder": str(tmp_path)}
    )
    assert run.record.backend == "docker"
    assert "failed" not in set(run.trials()["state"])
    assert (run.trials()["requests"] > 0).all()
    assert (run.trials()["service_cpu_us_per_request"] > 0).all()
    assert our_stacks() == []


@pytest.mark.slow
def test_a_service_that_dies_in_its_slice_fails_the_block_and_the_run_goes_on(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "was_there"
    served = f"{sys.executable} {EXAMPLE} --port {{port}}"
    # The first start is for the choice of the design, the second for the first block.
    second = f"echo >> {mark}; if test $(wc -l < {mark}) = 2; then exec timeout -s KILL 2.5"
    script = shlex.quote(f"{second} {served}; fi; exec {served}")
    variants = [f"old=command:{COMMAND}", f"new=command:sh -c {script}"]
    run = api.run("custom_service", {**SMALL, "variants": variants, "design": "slices"})
    trials = run.trials()
    states = trials.groupby("block")["state"].agg(set).tolist()
    assert states[0] == {"failed"}
    assert "failed" not in states[1]
    reasons = trials[trials["state"] == "failed"]["reasons"]
    assert all("'new'" in reason[0].text for reason in reasons)
    assert our_stacks() == []


def command_of(program: str, *words: object) -> str:
    file = Path(__file__).with_name(program)
    return f"command:{shlex.join([sys.executable, str(file)])} {{port}} {' '.join(map(str, words))}"


@pytest.mark.slow
def test_workers_that_share_what_was_loaded_before_the_fork_use_less_memory() -> None:
    variants = [f"{name}={command_of('forking_server.py', name)}" for name in ("each", "preload")]
    run = api.run("custom_service", {**SMALL, "blocks": 1, "variants": variants})
    memory = run.trials().set_index("treatment")["service_memory_bytes"]
    table, workers = 40e6, 4
    assert memory["variant=each"] > workers * table
    assert table < memory["variant=preload"] < 2 * table
