"""py-spy on real processes, its files in speedscope's format, and watched functions."""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psutil
import pytest

from perflab.errors import ProfilerFailed
from perflab.instruments import py_spy
from perflab.instruments.profiler import unseen, watched_columns, watched_samples
from perflab.instruments.py_spy import PySpy, check_usable, doubts, refusal
from perflab.instruments.py_spy_profiles import call_chains, own_functions, without_waiting
from tests.support.children import child

BUSY = """
def spin():
    while True:
        sum(range(1000))

def main():
    print("busy", flush=True)
    spin()

main()
"""


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[str]]:
    with child(BUSY) as started:
        yield started


@pytest.mark.alone
def test_the_chains_name_the_function_that_is_busy_and_its_caller(busy) -> None:
    profiler = PySpy(busy.pid, 100, 20, {})
    profiler.begin()
    time.sleep(0.6)
    profile = profiler.collect()
    chains = profile.chains
    # The process was busy all the time; a sampler of 0.6 s is late by a few samples, or by many.
    assert chains["samples"].sum() == pytest.approx(profile.looks, rel=0.5)
    assert profile.looks >= 15
    inside = chains["chain"].str.contains(r"main \(<string>\);spin \(<string>\)$")
    assert chains.loc[inside, "samples"].sum() > 0.9 * chains["samples"].sum()
    assert busy.poll() is None


@pytest.mark.promise
def test_no_sample_stops_the_process(busy) -> None:
    # A stop between the look at a thread's state and at its chain gives the CPU of a burst to what
    # comes after it: of 0.93 ms a turn 0.48 were seen, and 0.92 without.
    profiler = PySpy(busy.pid, 400, 20, {})
    profiler.begin()
    status, states = Path(f"/proc/{busy.pid}/stat"), Counter[str]()
    until = time.monotonic() + 2
    while time.monotonic() < until:
        states[status.read_text().rpartition(")")[2].split()[0]] += 1
    assert profiler.collect().chains["samples"].sum() > 50
    assert states.total() > 1000
    assert states["t"] + states["T"] == 0, states


DEEP = """
import asyncio, json, sys

DATA = [{"id": n, "of": [1, 2, 3], "in": {"name": str(n)}} for n in range(40)]

def serialize():
    return json.dumps(DATA, indent=1)

async def main():
    print("busy", flush=True)
    while True:
        await asyncio.sleep(0)
        serialize()

asyncio.run(main())
"""


@pytest.mark.alone
@pytest.mark.promise
def test_work_of_a_library_belongs_to_the_function_that_calls_it(tmp_path: Path) -> None:
    # Chains of short calls change while they are read: a third of them, and up to four fifths of
    # those of the innermost function, have lost their callers. Few are read wrong in the middle.
    program = tmp_path / "deep.py"
    program.write_text(DEEP)
    with child(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')") as deep:
        profiler = PySpy(deep.pid, 100, 20, {})
        profiler.begin()
        time.sleep(2)
        counts = own_functions(profiler.collect().text, str(tmp_path))
    assert counts.total() > 50
    assert counts["serialize (deep.py)", "json"] > 0.8 * counts.total(), counts
    assert counts["module json", ""] < 0.1 * counts.total(), counts


def test_an_end_by_force_ends_the_profiler_and_not_the_process(busy) -> None:
    profiler = PySpy(busy.pid, 100, 20, {})
    profiler.begin()
    profiler.end()
    assert not psutil.pid_exists(profiler.pid)
    time.sleep(0.1)
    # The process runs on and was not left stopped.
    assert psutil.Process(busy.pid).status() != psutil.STATUS_STOPPED
    spent = psutil.Process(busy.pid).cpu_times().user
    time.sleep(0.2)
    assert psutil.Process(busy.pid).cpu_times().user > spent


def test_a_process_that_is_no_python_is_refused_in_plain_words() -> None:
    with subprocess.Popen(["sleep", "30"]) as sleeper:
        with pytest.raises(ProfilerFailed, match=r"could not begin.*Python processes"):
            PySpy(sleeper.pid, 100, 5, {}).begin()
        sleeper.kill()


def test_errors_say_how_to_get_py_spy_or_its_permission(monkeypatch, tmp_path: Path) -> None:
    text = str(refusal("Error: Permission Denied: Try running again with elevated permissions"))
    assert "ptrace is not permitted" in text
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(py_spy.sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(ProfilerFailed, match="make setup"):
        check_usable()


def test_trouble_that_py_spy_reports_becomes_a_warning() -> None:
    text = "Wrote raw. Samples: 90 Errors: 10\npy-spy> 1.50s behind in sampling, results may be"
    assert doubts(text) == (
        "py-spy could not read 10 of 100 call chains",
        "py-spy was up to 1.5 s late: its call chains are fewer than due",
    )
    assert doubts("Wrote raw. Samples: 500 Errors: 1") == ()


def test_samples_that_wait_are_left_out_by_their_innermost_function() -> None:
    running = [
        "main (a.py);select (database.py)",
        "main (a.py);EpollSelector.select (selectors.py);helper (b.py)",
        "_worker (concurrent/futures/thread.py);WriteBehind._commit (chat/commits.py)",
    ]
    waiting = [
        "main (a.py);EpollSelector.select (selectors.py)",
        "run (anyio/threads.py);Queue.get (queue.py);Condition.wait (threading.py)",
        "Thread._bootstrap (threading.py);_worker (concurrent/futures/thread.py)",
    ]
    chains = pd.DataFrame({"chain": [*waiting, *running], "samples": range(6)})
    left = without_waiting(chains)
    assert list(left["chain"]) == running
    assert list(left["samples"]) == [3, 4, 5]


def profile(frames: list[tuple[str, str]], *threads: list[list[int]]) -> str:
    return json.dumps(
        {
            "shared": {"frames": [{"name": name, "file": file} for name, file in frames]},
            "profiles": [
                {"type": "sampled", "name": f"thread {number}", "samples": samples}
                for number, samples in enumerate(threads)
            ],
        }
    )


FRAMES = [
    ("main", "/srv/chat/server.py"),
    ("run", "/usr/lib/python3.11/asyncio/runners.py"),
    ("<lambda>;1", "/opt/venv/lib/python3.11/site-packages/websockets/legacy/protocol.py"),
    ("spin", "<string>"),
]


def test_equal_chains_of_all_threads_are_added_up_outermost_first() -> None:
    table = call_chains(profile(FRAMES, [[0, 1], [0, 1, 2], [0, 1]], [[0, 1], [], [3]]))
    assert dict(zip(table["chain"], table["samples"], strict=True)) == {
        "main (chat/server.py);run (asyncio/runners.py)": 3,
        "main (chat/server.py);run (asyncio/runners.py);"
        "<lambda>:1 (websockets/legacy/protocol.py)": 1,
        "spin (<string>)": 1,
    }


@pytest.mark.parametrize("text", ["", "[]", '{"shared": {}}', profile(FRAMES, [[9]])])
def test_a_text_that_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(ProfilerFailed, match="no speedscope profile"):
        call_chains(text)


WRITE = "Connection.write (chat/connection.py)"
ENCODE = "PerMessageDeflate.encode (websockets/extensions/permessage_deflate.py)"
DUMPS = "JSONEncoder.encode (json/encoder.py)"


def chains_of(counts: dict[str, int]) -> pd.DataFrame:
    return pd.DataFrame(counts.items(), columns=["chain", "samples"])


def test_a_sample_counts_wherever_the_function_is_in_its_chain() -> None:
    # A function that calls itself counts once.
    chains = chains_of({f"main;{WRITE};{ENCODE};{WRITE}": 3, f"main;{WRITE}": 2, "main": 5})
    watch = {"send": r"\.write \(", "deflate": r"permessage_deflate\.py"}
    assert watched_samples(chains, watch) == {"send": 5, "deflate": 3}


def test_a_pattern_matches_one_frame_and_not_the_chain() -> None:
    chains = chains_of({f"main;{WRITE};{DUMPS}": 7})
    assert watched_samples(chains, {"both": r"write.*encode"}) == {"both": 0}
    assert watched_samples(chains, {"whole": r"^JSONEncoder.*encoder\.py\)$"}) == {"whole": 7}


def test_a_function_in_no_sample_is_zero_with_a_warning() -> None:
    watch = {"send": "write", "gone": "no_such_function"}
    counts = watched_samples(chains_of({f"main;{WRITE}": 10}), watch)
    row = watched_columns(counts, samples=10, rate_hz=100, messages=10)
    assert (row["profile_gone_share"], row["profile_gone_us_per_message"]) == (0.0, 0.0)
    (warning,) = unseen(counts, watch, 10)
    assert "'gone' is in none of 10 samples" in warning
    assert "no_such_function" in warning
    assert all(map(math.isnan, watched_columns({"send": 0}, 0, 100, messages=0).values()))
