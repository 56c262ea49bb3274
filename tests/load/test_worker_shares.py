"""A load in shares: generators that know nothing of each other send one schedule together."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from perflab.load.columns import rows
from perflab.load.generator import Generator, Share
from perflab.load.outcome import MEASURE
from perflab.load.schedule import instants
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Stage, Workload


@pytest.fixture
def url() -> Iterator[str]:
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("server.py")), "0.001", "good"],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    yield f"http://127.0.0.1:{int(child.stdout.readline())}"
    child.kill()
    child.wait()
    child.stdout.close()


def sent_in_shares(work: Workload, url: str, folder: Path, sizes: list[int]) -> list[int]:
    """Send a load by one generator per share; return when each worker has begun, in ns."""
    core, of = max(os.sched_getaffinity(0)), sum(sizes)
    made = [Generator([core] * size, {}, real_time=False) for size in sizes]
    try:
        for generator in made:
            generator.start()
        start_ns = time.monotonic_ns() + 200_000_000
        with ThreadPoolExecutor(len(made)) as pool:
            sent = [
                pool.submit(
                    generator.gather, work, url, folder, start_ns,
                    share=Share(sum(sizes[:number]), of),
                )
                for number, generator in enumerate(made)
            ]  # fmt: skip
        reports = [report for each in sent for report in each.result().reports]
    finally:
        for generator in made:
            generator.close()
    return [report["start_ns"] for report in reports]


def test_the_shares_of_an_open_loop_are_the_schedule_of_one(url: str, tmp_path: Path) -> None:
    arrivals = OpenLoop(stages=(Stage(rate=300, duration_s=1),), arrivals="poisson", seed=3)
    work = Workload(request=Request(), arrivals=arrivals)
    began_ns = sent_in_shares(work, url, tmp_path, [1, 2])
    found = [
        rows(tmp_path / str(number))["planned_ns"] - start_ns
        for number, start_ns in enumerate(began_ns)
    ]
    whole = np.concatenate(list(instants(arrivals)))
    assert np.array_equal(np.sort(np.concatenate(found)), whole)
    assert all(len(each) for each in found)


def test_the_shares_of_a_closed_loop_have_all_its_users_and_requests(
    url: str, tmp_path: Path
) -> None:
    arrivals = ClosedLoop(users=5, requests=101, warmup_requests=7)
    work = Workload(request=Request(), arrivals=arrivals)
    sent_in_shares(work, url, tmp_path, [2, 1])
    found = [rows(tmp_path / str(number)) for number in range(3)]
    users = [set(each["user"].tolist()) for each in found]
    assert sorted(user for each in users for user in each) == [0, 1, 2, 3, 4]
    every = np.concatenate(found)
    assert (every["stage"] == MEASURE).sum() == 101
    assert len(every) == 108
