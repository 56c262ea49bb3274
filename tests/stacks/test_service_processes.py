"""A service's processes are found, identified and ended together, in slow work before a run too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from perflab.errors import ImageError, RunInterrupted
from perflab.host.processes import how_it_ended
from perflab.stacks.backend import Labels
from perflab.stacks.commands import never, patiently, run_command
from perflab.stacks.service_processes import end, family, is_alive, members, of_service, working_in
from tests.stacks.asking import wait_until

# A master whose child hides as PostgreSQL's do: a session of its own, no environment, SIGINT
# ignored. The child works in the folder of the argument.
MASTER = """
import os, subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-c", "import signal, time; signal.signal(2, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"],
    start_new_session=True, env={}, cwd=sys.argv[1], stdout=subprocess.PIPE,
)
child.stdout.read(1)
print(child.pid, flush=True)
child.wait()
print("replaced", flush=True)
import time; time.sleep(60)
"""  # noqa: E501


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    labels = Labels("labelled", "it", "run").as_environment()
    command = [sys.executable, "-c", MASTER, str(tmp_path)]
    environment = {**os.environ, **labels}
    master = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert master.stdout is not None
    child = int(master.stdout.readline())
    yield master, child
    for pid in (child, master.pid):
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)
    master.wait()
    master.stdout.close()


def test_a_child_is_found_by_its_folder_when_its_master_has_ended(
    service: tuple[subprocess.Popen[str], int], tmp_path: Path
) -> None:
    master, child = service
    assert [process.pid for process in of_service("labelled", "it")] == [master.pid]
    master.kill()
    master.wait()
    assert family(master.pid) == []
    assert [process.pid for process in working_in(tmp_path)] == [child]
    assert child in [process.pid for process in working_in(tmp_path.parent)]
    assert working_in(tmp_path / "other") == []
    end(working_in(tmp_path), signal.SIGINT, timeout_s=0.2)
    assert working_in(tmp_path) == []


def test_a_process_that_ignores_the_signal_is_killed_and_its_parent_can_still_learn_how(
    service: tuple[subprocess.Popen[str], int],
) -> None:
    master, child = service
    os.kill(child, signal.SIGSTOP)
    end(family(master.pid), signal.SIGTERM, timeout_s=0.2)
    wait_until(lambda: not psutil.pid_exists(child))
    assert how_it_ended(master.wait()) == "was ended by SIGTERM"


def test_the_lasting_processes_are_chosen_by_their_command_and_their_end_is_seen(
    service: tuple[subprocess.Popen[str], int],
) -> None:
    master, child = service
    both = list(members([master.pid, child]))
    assert [is_alive(process) for process in both] == [True, True]
    assert members([master.pid, child], lasting="^postgres: ") == {}
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: not is_alive(both[1]))
    assert is_alive(both[0])


ENVIRONMENT = {**os.environ, **Labels("patience", "it", "run").as_environment()}


def test_an_interrupted_command_is_ended_with_all_its_processes() -> None:
    began = time.monotonic()

    def interrupted() -> str:
        return "enough" if len(of_service("patience", "it")) == 3 else ""

    with pytest.raises(RunInterrupted, match="interrupted while it slept: enough"):
        run_command(["sh", "-c", "sleep 60 & sleep 60"], interrupted, "while it slept", ENVIRONMENT)
    assert time.monotonic() - began < 20, "it would sleep for a minute"
    assert of_service("patience", "it") == []


def test_a_command_is_done_when_it_has_ended_although_it_left_a_server(tmp_path: Path) -> None:
    began, file = time.monotonic(), tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ > {file}; exec sleep 30' & echo said; echo wrong >&2; exit 3"
    done = run_command(["sh", "-c", script], never, "", os.environ)
    assert time.monotonic() - began < 15, "it would sleep for half a minute"
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "wrong\n")
    wait_until(lambda: file.exists() and bool(file.read_text().strip()))
    os.kill(int(file.read_text()), signal.SIGKILL)


def test_no_line_that_a_script_writes_to_its_own_streams_by_name_is_lost() -> None:
    script = "echo 1; echo 2 > /dev/stdout; echo a >&2; echo b > /dev/stderr; echo c >&2"
    done = run_command(["sh", "-c", script], never, "", os.environ)
    assert (done.stdout, done.stderr) == ("1\n2\n", "a\nb\nc\n")


def test_an_interrupted_function_is_not_awaited_and_an_error_is_passed_on() -> None:
    began = time.monotonic()
    with pytest.raises(RunInterrupted, match="interrupted while it was built: enough"):
        patiently(lambda: time.sleep(30), lambda: "enough", "while it was built")
    assert time.monotonic() - began < 15, "it would sleep for half a minute"

    def fail() -> None:
        raise ImageError("no base")

    with pytest.raises(ImageError, match="no base"):
        patiently(fail, never, "")
    assert patiently(lambda: 7, never, "") == 7
