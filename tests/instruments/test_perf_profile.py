"""Compiled services: the functions in which they work, by perf."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perflab.errors import ProfilerFailed
from perflab.host.processes import may_not_be_read
from perflab.instruments.functions import sampler_of
from perflab.instruments.perf_profile import PerfProfile, functions_of
from perflab.instruments.py_spy_profiles import Function
from tests.support.children import SLEEPS, child

GO = """\
\t           8b04f runtime.memmove (/srv/shop)
\t          f3250 encoding/json.(*Encoder).Encode (/srv/shop)
\t          240cc9 main.list (/srv/shop)
\t          230ba9 net/http.HandlerFunc.ServeHTTP (/srv/shop)

\tffffffff81000000 do_syscall_64 ([kernel.kallsyms])
\t          1 shop/internal/store.(*Store).Get (/srv/shop)

\t           1 runtime.gcBgMarkWorker (/srv/shop)
\t           2 runtime.goexit.abi0 (/srv/shop)

\t           3 encoding/json.Marshal (/srv/shop)

\tffffffff81000000 finish_task_switch ([kernel.kallsyms])
"""
RUST = """\
\t           1 <alloc::vec::Vec<T> as core::clone::Clone>::clone::h0123456789abcdef (/srv/shop)
\t           2 shop::list::h0123456789abcdef (/srv/shop)

\t           3 malloc (/usr/lib/libc.so.6)

\t           4 [unknown] (/srv/shop)
"""
WORKS = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int digits(int n) { return n < 2 ? 1 : digits(n - 1) + digits(n - 2); }
int main() {
  puts("up");
  fflush(stdout);
  for (;;) if (digits(20) == 0) abort();
}
"""
HAS_PERF = shutil.which("perf") and shutil.which("cc")


def by_name(counts: Counter[Function]) -> dict[str, int]:
    return {name: count for (name, library), count in counts.items() if not library}


@pytest.mark.promise
def test_a_sample_counts_for_the_innermost_function_that_is_not_of_the_language() -> None:
    assert by_name(functions_of(GO, "/srv/shop", go=True)) == {
        "main.list": 1, "shop/internal/store.(*Store).Get": 1, "package runtime": 1,
        "package encoding/json": 1, "the kernel": 1,
    }  # fmt: skip
    # What a build adds to a name is left out, so that both sides have one.
    assert by_name(functions_of(RUST, "/srv/shop", go=False)) == {
        "shop::list": 1, "library libc.so.6": 1, "the program, whose symbols are stripped,": 1,
    }  # fmt: skip


@pytest.mark.skipif(not HAS_PERF, reason="there is no perf or no C compiler here")
def test_a_compiled_program_is_profiled_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "works.c").write_text(WORKS)
    program = tmp_path / "works"
    subprocess.run(
        ["cc", "-O1", "-fno-omit-frame-pointer", "-o", program, tmp_path / "works.c"], check=True
    )
    started = subprocess.Popen([program], stdout=subprocess.PIPE)
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == b"up\n"
        sampler = sampler_of(started.pid, [started.pid], 30.0, {})
        assert isinstance(sampler, PerfProfile)
        sampler.begin()
        time.sleep(1)
        functions, chains = sampler.samples()
        assert started.poll() is None
    finally:
        started.kill()
        started.wait()
    assert functions.most_common(1)[0][0] == ("digits", "")
    assert [chain for chain in chains if chain.endswith("digits (works);digits (works)")]


@pytest.mark.promise
def test_a_child_that_has_ended_does_not_lose_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with child(SLEEPS) as service:
        profile = PerfProfile([ended.pid, service.pid], 1.0, {})
        program = Path(f"/proc/{service.pid}/exe").readlink()
        monkeypatch.setattr(profile, "_text", lambda: f"\t  1 work ({program})\n")
        functions, _ = profile.samples()
    assert functions == {("work", ""): 1}


@pytest.mark.promise
def test_where_all_processes_have_ended_the_program_is_gone(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    profile = PerfProfile([ended.pid], 1.0, {})
    profile._folder = tmp_path
    with pytest.raises(ProfilerFailed, match="all of its processes have ended"):
        profile.samples()


# As of a service of another user: only root reads what program it is.
UNREADABLE = "import ctypes; ctypes.CDLL(None).prctl(4, 0); " + SLEEPS


@contextmanager
def without_rights() -> Iterator[None]:
    """Be nobody while the block runs, if this is root."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(own)


def test_a_service_that_may_not_be_read_is_not_taken_for_a_compiled_one() -> None:
    with child(UNREADABLE) as service:
        told = pytest.raises(ProfilerFailed, match="its processes may not be read: run as root")
        with without_rights(), told:
            sampler_of(service.pid, [service.pid], 1.0, {})


def test_a_service_that_has_ended_is_not_told_to_be_unreadable() -> None:
    with child("print(1, flush=True)") as service:
        service.wait()
        assert not may_not_be_read(service.pid)
        sampler_of(service.pid, [service.pid], 1.0, {})


def test_without_perf_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ProfilerFailed, match="'apt-get install linux-perf'"):
        PerfProfile([os.getpid()], 1.0, {}).begin()


@pytest.mark.skipif(not HAS_PERF, reason="there is no perf here")
def test_where_perf_refuses_its_words_are_told() -> None:
    # No process has this number: the kernel gives smaller ones.
    with pytest.raises(ProfilerFailed, match="perf could not begin: "):
        PerfProfile([2**22 - 1], 1.0, {}).begin()
