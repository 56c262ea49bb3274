"""perf on real processes, where the kernel lets it look, and its refusals where it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from perflab.errors import ProfilerFailed
from perflab.sampling import perf, profilers
from perflab.sampling.perf import Perf, check_usable, doubts, refusal

BUSY = """
#include <stdio.h>
#include <pthread.h>
volatile unsigned long x;
__attribute__((noinline)) void work(void) { for (int i = 0; i < 1000000; i++) x += i; }
__attribute__((noinline)) void *spin(void *p) { for (;;) { work(); x++; } return p; }
int main(void) {
    pthread_t other;
    puts("busy"); fflush(stdout);
    getchar();
    pthread_create(&other, 0, spin, 0);
    spin(0);
}
"""


def looks() -> bool:
    try:
        check_usable()
    except ProfilerFailed:
        return False
    return True


LOOKS = looks()


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A compiled program that works on two threads, or a shell's loop without a compiler."""
    compiler = shutil.which("cc")
    command = ["sh", "-c", "echo busy; read line; while :; do :; done"]
    if compiler:
        (tmp_path / "busy.c").write_text(BUSY)
        options = ["-g", "-O0", "-fno-omit-frame-pointer", "-pthread", "-o", "busy", "busy.c"]
        subprocess.run([compiler, *options], cwd=tmp_path, check=True)
        command = [str(tmp_path / "busy")]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "busy\n"
    yield child
    child.kill()
    child.wait()


def begin(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


@pytest.mark.alone
def test_a_compiled_service_is_looked_at_or_refused_before_anything_starts(busy) -> None:
    if not LOOKS:
        with pytest.raises(ProfilerFailed, match="profiler=\\['off'\\] does without"):
            profilers.check_usable("native")
        return
    with Perf([busy.pid], 100, 20) as seen:
        begin(busy)
        time.sleep(0.8)
        cpu_s = sum(psutil.Process(busy.pid).cpu_times()[:2])
        chains = seen.collect()
    # A sample is a hundredth of a second of CPU, of every thread, those begun meanwhile too.
    assert chains["samples"].sum() == pytest.approx(100 * cpu_s, rel=0.3, abs=10)
    assert 80 <= seen.looks <= 200
    if shutil.which("cc"):
        working = chains["chain"].str.contains(r"work \(busy\)")
        assert chains.loc[working, "samples"].sum() > 0.9 * chains["samples"].sum()
        assert chains["chain"].str.contains(r"main \(busy\);(?:spin \(busy\);)?work").any()
        assert chains["chain"].str.contains(r"spin \(busy\);work \(busy\)$").any()
        assert not any("without a name" in warning for warning in seen.warnings)
    assert busy.poll() is None


def test_a_failure_inside_ends_perf_with_all_it_started_and_not_the_process(busy) -> None:
    if not LOOKS:
        with pytest.raises(ProfilerFailed), Perf([busy.pid], 100, 20):
            pass
        return
    pids: list[int] = []

    def fail() -> None:
        with Perf([busy.pid], 100, 20) as seen:
            own = psutil.Process(seen.pid)
            pids.extend([own.pid, *(child.pid for child in own.children())])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert len(pids) == 2
    deadline = time.monotonic() + 5
    while any(map(psutil.pid_exists, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert busy.poll() is None


@pytest.mark.alone
def test_it_ends_itself_at_its_bound(busy) -> None:
    if not LOOKS:
        return
    begin(busy)
    with Perf([busy.pid], 50, 1) as seen:
        deadline = time.monotonic() + 10
        while psutil.Process(seen.pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert seen.collect()["samples"].sum() > 10


def test_a_process_that_is_gone_is_refused_in_plain_words(busy) -> None:
    busy.kill()
    busy.wait()
    with pytest.raises(ProfilerFailed, match="perf"), Perf([busy.pid], 100, 5):
        pass


def test_without_perf_the_error_says_how_to_get_it(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProfilerFailed, match=r"not installed.*apt-get install linux-perf"):
        profilers.check_usable("native")


def test_where_perf_may_not_look_nothing_is_started(monkeypatch, tmp_path: Path) -> None:
    refusing = tmp_path / "perf"
    refusing.write_text("#!/bin/sh\necho 'Permission denied' >&2\nexit 255\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(ProfilerFailed, match=r"kernel\.perf_event_paranoid is -?\d"):
        profilers.check_usable("native")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user who may not look")
def test_a_user_who_may_not_look_is_told_what_to_permit(busy) -> None:
    if not LOOKS:
        return
    command = [perf.tool(), "record", *perf.LOOK, "-o", "/dev/null", "-p", str(busy.pid)]
    said = subprocess.run(
        [*command, "--", "true"], capture_output=True, text=True, user="nobody", cwd="/"
    )
    assert said.returncode != 0
    told = str(refusal(said.stderr))
    assert f"kernel.perf_event_paranoid is {perf.paranoid()}" in told
    assert "--cap-add PERFMON" in told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Error:\nAccess to performance monitoring and observability operations is limited.",
            "perf_event_paranoid",
        ),
        ("No permission to enable cpu-clock event.", "CAP_PERFMON"),
        (
            "The sys_perf_event_open() syscall returned with 38 (Function not implemented)",
            "gives perf no clock to sample",
        ),
        ("WARNING: perf not found for kernel 6.1", "could not begin: WARNING: perf not found"),
        ("", "it said nothing"),
    ],
)
def test_what_perf_says_becomes_a_reason_with_a_way_out(said: str, told: str) -> None:
    assert told in str(refusal(said))


def test_trouble_becomes_warnings() -> None:
    lost, nameless, kernel = doubts("Processed 900 events and lost 3 chunks!", 0.25, False)
    assert lost == "perf lost 3 pieces of what it saw: its call chains are fewer"
    assert nameless.startswith("25% of the samples hold a function without a name")
    assert "kernel's own functions are not seen" in kernel
    assert doubts("[ perf record: Captured and wrote 0.010 MB ]", 0.1, True) == ()
