"""Benchmarks end with what they started."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from benchmarks import right_answers, starved
from perflab.paths import project_root

# Without its duel: what runs beside it is told, and stays until a signal.
BENCHMARK = """
import time
import psutil
from benchmarks import bench, {module}
bench.options("")
with {module}.{neighbour}:
    print(*(child.pid for child in psutil.Process().children()), flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("module", "neighbour"),
    [
        (right_answers.__name__, "neighbour(True)"),
        (starved.__name__, f"starved({starved.NEIGHBOURS!r}, 0)"),
    ],
)
def test_a_benchmark_that_is_ended_leaves_no_neighbour_behind(module: str, neighbour: str) -> None:
    text = BENCHMARK.format(module=module.rpartition(".")[2], neighbour=neighbour)
    words = [sys.executable, "-c", text]
    with subprocess.Popen(words, cwd=project_root(), stdout=subprocess.PIPE) as benchmark:
        assert benchmark.stdout is not None
        neighbours = [psutil.Process(int(pid)) for pid in benchmark.stdout.readline().split()]
        assert neighbours
        benchmark.terminate()
    left = [each for each in neighbours if each.is_running()]
    for each in left:
        each.kill()
    assert left == []
