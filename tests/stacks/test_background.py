"""A server that its command puts into the background is measured and ended, or nothing is told."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Timer

import psutil
import pytest

from perflab import systems
from perflab.host.meters import ProcessTable
from perflab.host.placing import placement
from perflab.paths import services_dir
from perflab.stacks import cleanup, process_instance, residents, service_processes
from perflab.stacks.asking import status_of
from perflab.stacks.commands import Interrupted, never
from perflab.stacks.listening import owners
from perflab.stacks.process_backend import choose
from perflab.stacks.process_instance import ProcessInstance
from perflab.stacks.residents import Residents
from tests.stacks.asking import wait_until

SERVER = f"{sys.executable} {services_dir()}/duel_example/server.py --port {{port}}"
FORK = "import os, sys; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
FORKED = f"{FORK}os.execve(sys.argv[1], sys.argv[1:], %s)"
STUBBORN = "import runpy, signal, sys; signal.signal(15, signal.SIG_IGN); sys.argv.pop(0); "
STUBBORN += "runpy.run_path(sys.argv[0], run_name='__main__')"
# Keeps the servers that others ask for, as a container engine does.
KEEPER = "while read -r command; do env -i $command & done"


class Duel:
    """Two variants as a duel starts them; ``told`` is what their user reads."""

    def __init__(self, *commands: str) -> None:
        self.told: list[str] = []
        variants = [f"{name}=command:{words}" for name, words in zip("ab", commands, strict=True)]
        experiment = systems.experiment("custom_service")
        treatments = experiment.treatments(experiment.check({"variants": variants}))
        plans = {item.name: item.stack for item in treatments}
        backend = choose("process")
        self.residents = Residents(
            backend, plans, placement(), f"bg-{os.getpid()}", "run", self.told.append
        )
        self.residents.prepare()

    def started(self) -> list[ProcessInstance]:
        self.residents.start()
        found = [self.residents.instance(f"variant={name}", name) for name in "ab"]
        return [item for item in found if isinstance(item, ProcessInstance)]


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Path]:
    """Return a pipe that takes commands, one a line; the servers end with the test."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = ["sh", "-c", f"exec 3<>{pipe}; {KEEPER} <&3"]
    with subprocess.Popen(words, start_new_session=True) as process:
        yield pipe
        os.killpg(process.pid, 9)


def forked(environment: str) -> str:
    return f"{sys.executable} -c {shlex.quote(FORKED % environment)} {SERVER}"


def shell(words: str) -> str:
    return f"sh -c {shlex.quote(words)}"


COMMANDS = {
    "it forks twice and its command goes on": shell(f"{forked('os.environ')}; exec sleep 60"),
    "it forks twice, without its labels, and its command ends": forked("{}"),
    "a session of its own": f"setsid -f {SERVER}",
    "a shell's background": shell(f"{SERVER} & sleep 60"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_server_in_the_background_is_measured_listed_and_ended(command: str) -> None:
    duel = Duel(command, SERVER)
    try:
        (server, plain), table = duel.started(), ProcessTable()
        port = server.launch.port
        (pid,) = owners({port})
        assert pid is not None
        assert pid in server.meter().members(table)
        before = server.meter().read(table)
        assert all(status_of(port, "/") == 200 for _ in range(20))
        after = server.meter().read(ProcessTable())
        assert before
        assert after
        assert after.cpu_ns > before.cpu_ns
        assert after.memory_bytes > 0.7 * psutil.Process(pid).memory_info().rss
        assert port in {item.port for item in cleanup.everything()}
        is_child = psutil.Process(pid).ppid() == server._child.pid
        sentence = f"a: it went into the background; the lab follows it there (pid {pid})"
        assert (sentence in duel.told) is not is_child
        assert not [words for words in duel.told if words.startswith("b:")]
        server.pause()
        wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        server.resume()
        assert [server.exit_reason(), plain.exit_reason()] == ["", ""]
        if not is_child:
            psutil.Process(pid).kill()
            wait_until(server.exit_reason)
    finally:
        duel.residents.stop()
    assert not owners({port})
    assert cleanup.everything() == []
    assert not [words for words in duel.told if "killed" in words], "each was asked to end"


@pytest.mark.promise
def test_a_command_that_ends_after_its_server_is_ready_only_started_it() -> None:
    duel = Duel(shell(f"{SERVER} & sleep 2"), SERVER)
    try:
        server, _ = duel.started()
        (pid,) = owners({server.launch.port})
        wait_until(lambda: not service_processes.is_alive(server._command))
        assert server.has_left()
        assert "sleep" in duel.residents.lost("variant=a")["a"], "of a trial during which it ended"
        duel.residents.activate("variant=a")
        assert f"a: it went into the background; the lab follows it there (pid {pid})" in duel.told
        assert not duel.residents.lost("variant=a")
        assert pid in server.meter().members(ProcessTable())
        psutil.Process(pid).kill()
        wait_until(server.exit_reason)
    finally:
        duel.residents.stop()


@pytest.mark.promise
def test_a_server_that_another_program_keeps_has_no_cpu_and_no_memory(keeper: Path) -> None:
    ask = f"echo {SERVER} > {keeper}"
    duel = Duel(shell(ask), shell(f"{ask}; exec sleep 60"))
    instances = duel.started()
    for instance in instances:
        assert instance.meter().read(ProcessTable()) is None
        assert not instance.exit_reason()
    assert [words for words in duel.told if "start it in the foreground" in words] == [
        f"{name}: {process_instance.HIDDEN}" for name in "ab"
    ]
    duel.residents.stop()
    ports = [instance.launch.port for instance in instances]
    assert all(status_of(port, "/") == 200 for port in ports), "it is not the lab's to end"
    assert {f"{name}: a process that the lab cannot end still listens at its port {port}: end it"
            for name, port in zip("ab", ports, strict=True)} <= set(duel.told)  # fmt: skip


def test_services_end_side_by_side_and_a_slow_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_instance, "STOP_TIMEOUT_S", 1.5)
    monkeypatch.setattr(residents, "SLOW_S", 1.0)
    stubborn = SERVER.replace(" ", f" -c {shlex.quote(STUBBORN)} ", 1)
    duel = Duel(stubborn, stubborn)
    first, second = duel.started()
    both, stop = Barrier(2), ProcessInstance.stop

    def side_by_side(instance: ProcessInstance, interrupted: Interrupted = never) -> bool:
        both.wait(60)
        return stop(instance, interrupted=interrupted)

    monkeypatch.setattr(ProcessInstance, "stop", side_by_side)
    duel.residents.stop()
    slow = [words for words in duel.told if "s to end, and then had to be killed" in words]
    assert sorted(words[:11] for words in slow) == ["a: it took ", "b: it took "]
    assert not psutil.pid_exists(first.pid)
    assert not psutil.pid_exists(second.pid)


def test_after_an_interrupt_nobody_waits_for_a_slow_end() -> None:
    interrupts: list[str] = []
    duel = Duel(*[SERVER.replace(" ", f" -c {shlex.quote(STUBBORN)} ", 1)] * 2)
    duel.residents._interrupted = lambda: "".join(interrupts)
    services = duel.started()
    # It comes while they end already.
    Timer(0.3, interrupts.append, ["Ctrl-C"]).start()
    began = time.monotonic()
    duel.residents.stop()
    assert time.monotonic() - began < process_instance.STOP_TIMEOUT_S / 2
    assert not any(psutil.pid_exists(service.pid) for service in services)
