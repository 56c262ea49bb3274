"""Processes that stand for hosts: a Dask scheduler, and workers with folders of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perflab.recordings import Run, list_runs
from perflab.sweeps.hosts.dispatch import FAILURES
from tests.stacks.asking import wait_until
from tests.sweeps.swept import PERFLAB, Swept, read_until

DASK = str(Path(sys.executable).with_name("dask"))


class Host:
    """A worker with its own runs, state and host lock."""

    def __init__(self, cluster: Cluster, name: str, **environment: str) -> None:
        self.folder = cluster.folder / name
        self.folder.mkdir()
        places = {
            "PERFLAB_HOST": name,
            "PERFLAB_RUNS": str(self.folder / "runs"),
            "PERFLAB_FIGURES": str(self.folder / "figures"),
            "PERFLAB_STATE": str(self.folder / "state"),
            "PERFLAB_LOCK": str(self.folder / "lock"),
        }
        places |= environment
        self.worker = cluster.started(PERFLAB, "worker", cluster.address, **places)
        read_until(self.worker, f"worker {name} at")

    def runs(self) -> list[Run]:
        return list_runs(self.folder / "runs")


class Cluster:
    """A scheduler and its workers, which a test starts and ends."""

    def __init__(self, folder: Path, lengths: list[int]) -> None:
        self.folder = folder
        self.swept = Swept(folder, lengths)
        self.results = folder / "results"
        self._children: list[subprocess.Popen[str]] = []
        self._log = (folder / "log").open("w")
        file = folder / "scheduler.json"
        words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file"]
        failures = dict([FAILURES.split("=")])
        self.started(DASK, "scheduler", *words, str(file), **failures)
        wait_until(lambda: file.exists() and file.read_text().endswith("}"), timeout_s=120)
        self.address = str(json.loads(file.read_text())["address"])

    def started(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._log, text=True,
            env={**self.swept.environment, **environment},
        )  # fmt: skip
        self._children.append(child)
        return child

    @property
    def options(self) -> tuple[str, ...]:
        return ("--scheduler", self.address, "--results", str(self.results))

    def end(self) -> None:
        for child in reversed(self._children):
            if child.poll() is None:
                child.terminate()
        for child in self._children:
            child.wait(timeout=120)
            if child.stdout is not None:
                child.stdout.close()
        self._log.close()


@contextmanager
def cluster(folder: Path, lengths: list[int]) -> Iterator[Cluster]:
    started = Cluster(folder, lengths)
    try:
        yield started
    finally:
        started.end()
