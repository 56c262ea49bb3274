"""A sweep of equal cells over many hosts: what does a cell cost, and does a host ever measure two?

Each host is a network namespace with a worker (``perflab worker``) and with a lock, recordings, a
state and temporary files of its own; a bridge joins them, with addresses (198.18.0.0/15, RFC 2544)
that exist only inside. The notebook of a cell "measures" by sleeping under the host's lock
(``sleeping_cell.py``), so that all cells are equally long and none disturbs another. Hosts share
this machine's cores, which real ones do not: with ``--apart`` each sleeps so much longer than the
one before in its first cell, that later one sets its cell up while the others sleep. The wall time
counts that, the ideal does not.

Without ``--kill``: the wall time from the first cell's beginning to the last one's end, against the
ideal, which is as many rounds as the cells need, each as long as was really slept; and where the
time of a cell goes beyond its measurement:

- prepared: until the kernel's process is there (papermill reads and fills the notebook);
- kernel: until the first cell of the notebook runs;
- set-up: until it is measured: ``import perflab``, the lock, the run's folder;
- closing: the trial committed, the verdict;
- kernel's end: until papermill has its notebook;
- published: notebook, figures and run copied into the store and flushed;
- dispatch: until the host begins its next cell.

With ``--kill N`` workers get SIGKILL at random instants, and come back as a service manager would
have them; a sweep that has no worker left is gone on with (``--resume``, ``--retry``).

From the records alone is shown that no two measurements overlapped on a host, that every cell is
done and published exactly once and whole, and that nothing is left. The exit status is 1 where that
does not hold, or, without kills, where a cell costs more than 3 s or the wall time is more than 10%
above the ideal.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import os
import random
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import nbformat
import pandas as pd
import psutil
from sleeping_cell import LONGER
from swept_notebook import write_notebook

from perflab.cluster.store import MARKER
from perflab.host.lock import holder
from perflab.recordings import Run, list_runs
from perflab.sweeps.journal import Attempt, Journal

BIN = Path(sys.executable).parent
HERE = Path(__file__).resolve().parent
HEAD = "head"
MOST_COST_S, MOST_OF_IDEAL = 3.0, 1.1
SOME_FAILED = 3
MOST_STARTS = 30
WITHIN_S = 30.0
BACK_AFTER_S = 1.0
SWEEP = """
retries: 2
parameters: {{backend: process, blocks: 2, client: [lean], rate: [50], duration_s: {seconds}}}
cells:
  - notebook: client_overhead
    grid: {{body_bytes: {numbers}}}
"""
NOTEBOOK = (
    "body_bytes = 1\nduration_s = 1.0\nresume = from_run = None\nwait_s = 0.0\n"
    "backend, blocks, client, rate = '', 0, [], []",
    "import sys\n\nimport perflab\n\n"
    f"sys.path.insert(0, {str(HERE)!r})\nfrom sleeping_cell import sleep_and_record",
    "run = sleep_and_record(duration_s, body_bytes, resume, wait_s)",
    "perflab.verdict(run)",
)
PARTS = (
    "prepared", "kernel", "set-up", "asleep", "closing", "kernel's end", "published", "dispatch",
)  # fmt: skip


class Network:
    """Namespaces by name, the first of which has the bridge; nothing outside of them changes."""

    def __init__(self, names: Sequence[str]) -> None:
        self._mark = f"perflab-{secrets.token_hex(4)}"
        self._names = [HEAD, *names]
        self._made: list[str] = []

    def space(self, name: str) -> str:
        """Return the name of a namespace as the kernel has it."""
        return f"{self._mark}-{name}"

    def address(self, name: str) -> str:
        """Return a host's address inside."""
        return f"198.18.0.{1 + self._names.index(name)}"

    def lay(self) -> None:
        """Make namespaces and bridge."""
        for name in self._names:
            _ip("netns", "add", self.space(name))
            self._made.append(name)
            _ip("-n", self.space(name), "link", "set", "lo", "up")
        head = self.space(HEAD)
        _ip("-n", head, "link", "add", "bridge", "type", "bridge")
        self._up(HEAD, "bridge")
        for number, name in enumerate(self._names[1:]):
            port, wire = f"port{number}", ("peer", "name", "wire", "netns", self.space(name))
            _ip("-n", head, "link", "add", port, "type", "veth", *wire)
            _ip("-n", head, "link", "set", port, "master", "bridge", "up")
            self._up(name, "wire")

    def _up(self, name: str, device: str) -> None:
        space = self.space(name)
        _ip("-n", space, "address", "add", f"{self.address(name)}/24", "dev", device)
        _ip("-n", space, "link", "set", device, "up")

    def remove(self) -> None:
        """Remove what was made; wires and bridge go with their namespaces."""
        for name in self._made:
            subprocess.run(["ip", "netns", "delete", self.space(name)], check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Cluster:
    """A scheduler, its hosts, and the sweep that they carry out."""

    def __init__(self, root: Path, network: Network, names: list[str], apart_s: float) -> None:
        self.root, self.network, self.names = root, network, names
        self._apart_s = apart_s
        self.store, self.sweeps = root / "store", root / "sweeps"
        self.log = root / "log"
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._children: list[subprocess.Popen[bytes]] = []
        self._address = f"tcp://{network.address(HEAD)}:8786"
        self._environment = {
            **os.environ,
            "PERFLAB_NOTEBOOKS": str(root / "notebooks"),
            "PERFLAB_SWEEPS": str(self.sweeps),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
        }

    def begun(self, name: str, *command: str, **places: str) -> subprocess.Popen[bytes]:
        """Begin a command in a namespace; what it says is in the log."""
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.network.space(name)}", "--", *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**self._environment, **places},
            )  # fmt: skip
        self._children.append(child)
        return child

    def schedule(self) -> None:
        """Start the scheduler."""
        where = ("--host", self.network.address(HEAD), "--port", "8786", "--no-dashboard")
        self.begun(HEAD, str(BIN / "dask"), "scheduler", *where)

    def work(self, name: str) -> None:
        """Start a host's worker, with places of its own."""
        folder = self.root / name
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        own = {"STATE": "state", "RUNS": "runs", "FIGURES": "figures", "LOCK": "lock"}
        places = {f"PERFLAB_{key}": str(folder / place) for key, place in own.items()}
        places[LONGER] = str(self._apart_s * self.names.index(name))
        listen = ("--listen", self.network.address(name))
        self.workers[name] = self.begun(
            name, str(BIN / "perflab"), "worker", self._address, *listen,
            PERFLAB_HOST=name, TMPDIR=str(folder / "tmp"), **places,
        )  # fmt: skip

    def wait_for(self, names: Sequence[str], since: int) -> None:
        """Wait until workers have said that they are there, after so many bytes of the log."""
        deadline = time.monotonic() + 120
        while True:
            said = self.log.read_bytes()[since:].decode(errors="replace")
            if all(f"worker {name} at" in said for name in names):
                return
            if time.monotonic() > deadline:
                sys.exit(f"workers do not come up:\n{said[-3000:]}")
            time.sleep(0.1)

    def sweep(self, *words: str) -> subprocess.Popen[bytes]:
        """Begin the sweep, or go on with it, as its user types it."""
        asked = ("--scheduler", self._address, "--store", str(self.store))
        command = (str(BIN / "perflab"), "sweep", str(self.root / "many.yaml"), *asked, *words)
        return self.begun(HEAD, *command, PERFLAB_RUNS=str(self.root / "none"))

    def end(self) -> None:
        """End every process that was started, and those that they left."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for child in reversed(self._children):
                if child.poll() is None:
                    child.send_signal(number)
            deadline = time.monotonic() + WITHIN_S
            while any(child.poll() is None for child in self._children):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.1)
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def processes(self) -> list[psutil.Process]:
        """Return the processes that belong to this benchmark and are alive."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                places = process.environ().get("PERFLAB_SWEEPS", "")
                if process.pid != os.getpid() and places == str(self.sweeps):
                    found.append(process)
        return found


@dataclass
class Carried:
    """How the sweep was carried out: how often its command was typed, who was killed when."""

    starts: int = 0
    seconds: float = 0.0
    killed: int = 0


def carry_out(cluster: Cluster, kills: int, sleep_s: float, chance: random.Random) -> Carried:
    """Carry the sweep out to its end, with so many workers killed meanwhile."""
    carried, words, began = Carried(), [], time.monotonic()
    while True:
        carried.starts += 1
        if carried.starts > MOST_STARTS:
            sys.exit(f"not done after {MOST_STARTS} starts:\n{_said(cluster)}")
        code = _session(cluster, cluster.sweep(*words), kills, sleep_s, chance, carried)
        if code == 0:
            carried.seconds = time.monotonic() - began
            return carried
        if not kills:
            sys.exit(f"the sweep ended with {code}:\n{_said(cluster)}")
        words = ["--retry" if code == SOME_FAILED else "--resume"]


def _session(
    cluster: Cluster,
    command: subprocess.Popen[bytes],
    kills: int,
    sleep_s: float,
    chance: random.Random,
    carried: Carried,
) -> int:
    """Kill workers that this command has, until it ends; return its status."""
    mine, before = list(cluster.workers.items()), _begun(cluster)
    # Not before it has given out cells: who is killed sooner is not missed by anybody.
    while command.poll() is None and _begun(cluster) == before:
        time.sleep(0.1)
    while True:
        pause_s = chance.uniform(0.3, 2 * sleep_s) if carried.killed < kills and mine else None
        try:
            return command.wait(pause_s)
        except subprocess.TimeoutExpired:
            name, worker = mine.pop(chance.randrange(len(mine)))
        worker.kill()
        worker.wait()
        carried.killed += 1
        print(f"kill {carried.killed}: {name}", flush=True)
        since = cluster.log.stat().st_size
        time.sleep(BACK_AFTER_S)
        cluster.work(name)
        cluster.wait_for([name], since)


def _begun(cluster: Cluster) -> int:
    """Return how many attempts at cells have been begun so far."""
    journals = cluster.sweeps.glob("[!.]*-many-*/journal.jsonl")
    return sum(each.read_text().count('"event":"begun"') for each in journals)


def _said(cluster: Cluster) -> str:
    return cluster.log.read_bytes()[-3000:].decode(errors="replace")


@dataclass(frozen=True)
class Slept:
    """A measurement: of which cell, on which host, from when to when by the hosts' one clock."""

    number: int
    host: str
    began_ns: int
    ended_ns: int


def slept(run: Run) -> Slept | None:
    """Return what a run measured; None of a run that was cut off before."""
    requests = run.requests()
    if not len(requests):
        return None
    began, ended = int(requests["started_ns"].min()), int(requests["done_ns"].max())
    return Slept(run.record.parameters["body_bytes"], run.record.notes["host"], began, ended)


def every_measurement(cluster: Cluster) -> list[Slept]:
    """Return what was measured, by the records that the hosts have: also of lost workers."""
    runs = [run for name in cluster.names for run in list_runs(cluster.root / name / "runs")]
    return [found for found in map(slept, runs) if found]


def overlaps(measured: Sequence[Slept]) -> list[str]:
    """Return in sentences which measurements overlapped on a host."""
    found = []
    for host in {each.host for each in measured}:
        own = sorted((each for each in measured if each.host == host), key=lambda it: it.began_ns)
        found += [
            f"overlap on {host}: cells {before.number} and {after.number}"
            for before, after in pairwise(own)
            if after.began_ns < before.ended_ns
        ]
    return found


def most_at_once(measured: Sequence[Slept]) -> int:
    """Return how many measurements were under way at one time, on all hosts together."""
    steps = [(each.began_ns, 1) for each in measured] + [(each.ended_ns, -1) for each in measured]
    most = now = 0
    for _, step in sorted(steps):
        now += step
        most = max(most, now)
    return most


def faults(cluster: Cluster, cells: int) -> Iterator[str]:
    """Yield what of the promises does not hold, by the records."""
    (folder,) = cluster.sweeps.glob("[!.]*-many-*")
    index, journal = pd.read_parquet(folder / "index.parquet"), Journal(folder)
    if len(index) != cells or set(index["state"]) != {"done"}:
        yield f"the index has {dict(index['state'].value_counts())}"
    for cell in index["cell"]:
        outcomes = [each.outcome for each in journal.cell(cell).attempts]
        if outcomes.count("done") != 1:
            yield f"cell {cell} was {', '.join(outcomes)}"
    published = list_runs(cluster.store / "runs")
    ids = sorted(run.run_id for run in published)
    if ids != sorted(index["run_id"]):
        yield f"published are {len(ids)} runs, which are not those of the index"
    numbers = sorted(run.record.parameters["body_bytes"] for run in published)
    if numbers != list(range(1, cells + 1)):
        yield f"published are the cells {numbers}"
    for marker in cluster.store.glob(f"*/*/{MARKER}"):
        yield from _not_whole(marker)
    yield from (f"half in the store: {half}" for half in cluster.store.rglob(".tmp-*"))
    yield from overlaps(every_measurement(cluster))
    for run in published:
        if run.record.state != "finished" or run.problems or slept(run) is None:
            yield f"run {run.run_id} is {run.record.state}: {'; '.join(run.problems)}"


def _not_whole(marker: Path) -> Iterator[str]:
    listed = json.loads(marker.read_text())["files"]
    for name, digest in listed.items():
        file = marker.parent / name
        if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            yield f"published, and not whole: {file}"


def left(cluster: Cluster) -> list[str]:
    """Return what there is once all has been ended."""
    found = [f"process {each.pid}" for each in cluster.processes()]
    for name in cluster.names:
        folder = cluster.root / name
        found += [f"the lock of {name}"] if holder(folder / "lock") else []
        found += [str(path) for path in (folder / "tmp").iterdir()]
    return found


@dataclass(frozen=True)
class Cell:
    """Where the time of a cell went: seconds of the calendar at which each part began."""

    host: str
    instants: tuple[float, ...]

    def parts(self, next_begun: float | None) -> dict[str, float]:
        """Return the seconds of each part; of a host's last cell there is no dispatch."""
        instants = [*self.instants, *([next_begun] if next_begun else [])]
        named = zip(PARTS, pairwise(instants), strict=False)
        return {name: after - before for name, (before, after) in named}


def cells_by_host(cluster: Cluster) -> dict[str, list[Cell]]:
    """Return the cells of each host in the order in which it began them."""
    (folder,) = cluster.sweeps.glob("[!.]*-many-*")
    journal = Journal(folder)
    found: dict[str, list[Cell]] = {}
    for cell in journal.sessions[-1].cells:
        done = _cell(cluster, journal.cell(cell).attempts[-1])
        found.setdefault(done.host, []).append(done)
    return {host: sorted(own, key=lambda it: it.instants) for host, own in sorted(found.items())}


def _cell(cluster: Cluster, attempt: Attempt) -> Cell:
    assert attempt.ended is not None
    notes = Run(cluster.store / "runs" / attempt.ended.run_id).record.notes
    notebook = nbformat.read(attempt.ended.notebook, as_version=4)
    code = [each for each in notebook.cells if each.cell_type == "code"]
    marker = cluster.store / "runs" / attempt.ended.run_id / MARKER
    instants = (
        _seconds(attempt.begun.at),
        notes["kernel_at"],
        _seconds(code[0].metadata.papermill.start_time),
        notes["began_at"],
        notes["ended_at"],
        _seconds(code[-1].metadata.papermill.end_time),
        _seconds(notebook.metadata.papermill.end_time),
        marker.stat().st_mtime,
    )
    return Cell(attempt.begun.host, instants)


def _seconds(text: str) -> float:
    """Return an instant of the calendar, which papermill writes in UTC with or without a zone."""
    instant = datetime.fromisoformat(text)
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def print_costs(cluster: Cluster, cells: int, carried: Carried) -> list[str]:
    """Print where the time went, and return which promise about it does not hold."""
    by_host = cells_by_host(cluster)
    rows = []
    for own in by_host.values():
        begun = [each.instants[0] for each in own]
        rows += [each.parts(after) for each, after in zip(own, [*begun[1:], None], strict=True)]
    print(f"\n{'part':<14}{'mean s':>8}{'median':>8}{'longest':>9}")
    for part in PARTS:
        seconds = [row[part] for row in rows if part in row]
        if seconds:
            middle = statistics.median(seconds)
            print(f"{part:<14}{statistics.mean(seconds):>8.2f}{middle:>8.2f}{max(seconds):>9.2f}")
    asleep = statistics.median(row["asleep"] for row in rows)
    cost = statistics.mean(sum(row.values()) - row["asleep"] for row in rows)
    every = [each for own in by_host.values() for each in own]
    first, last = min(it.instants[0] for it in every), max(it.instants[-1] for it in every)
    ideal, wall = math.ceil(cells / len(cluster.names)) * asleep, last - first
    print(f"{'cost of a cell':<14}{cost:>8.2f}  beyond {asleep:.2f} s asleep")
    print(
        f"wall time {wall:.1f} s, ideal {ideal:.1f} s: {wall / ideal:.3f} of it; before the first "
        f"cell and after the last one {carried.seconds - wall:.1f} s"
    )
    late = [f"a cell costs {cost:.2f} s, above {MOST_COST_S:g}"] if cost > MOST_COST_S else []
    if wall > MOST_OF_IDEAL * ideal:
        late.append(f"the wall time is {wall / ideal:.3f} of the ideal, above {MOST_OF_IDEAL:g}")
    return late


@contextmanager
def own_cluster(hosts: int, apart_s: float) -> Iterator[Cluster]:
    """Give a scheduler and hosts in namespaces; all of it is ended and removed, come what may."""
    names = [f"host{number}" for number in range(1, hosts + 1)]
    network = Network(names)
    with tempfile.TemporaryDirectory(
        prefix="perflab-many-cells-", dir="/var/tmp", ignore_cleanup_errors=True
    ) as folder:
        root = Path(folder)
        cluster = Cluster(root, network, names, apart_s)
        try:
            write_notebook(root / "notebooks", NOTEBOOK)
            network.lay()
            cluster.schedule()
            for name in names:
                cluster.work(name)
            cluster.wait_for(names, 0)
            yield cluster
        finally:
            cluster.end()
            network.remove()


def main() -> int:
    """Carry a sweep out, look at what it left, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=100)
    parser.add_argument("--workers", type=int, default=4, help="hosts")
    parser.add_argument("--sleeping", type=float, default=30.0, help="seconds of each measurement")
    parser.add_argument("--kill", type=int, default=0, help="workers that are killed in between")
    parser.add_argument("--apart", type=float, default=0.0, help="seconds between hosts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60, help="it gives up after these")
    given = parser.parse_args()
    if os.geteuid():
        sys.exit("network namespaces need root")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("ended before the last cell"))
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done within {given.minutes:g} min"))
    signal.setitimer(signal.ITIMER_REAL, 60 * given.minutes)
    with own_cluster(given.workers, given.apart) as cluster:
        numbers = list(range(1, given.cells + 1))
        file = cluster.root / "many.yaml"
        file.write_text(SWEEP.format(seconds=given.sleeping, numbers=numbers))
        chance = random.Random(given.seed)
        carried = carry_out(cluster, given.kill, given.sleeping, chance)
        found = list(faults(cluster, given.cells))
        measured = every_measurement(cluster)
        if not given.kill:
            found += print_costs(cluster, given.cells, carried)
        cluster.end()
        found += [f"left: {each}" for each in left(cluster)]
    print(
        f"\n{given.cells} cells over {given.workers} hosts in {carried.seconds:.0f} s, "
        f"{carried.killed} workers killed, the sweep begun or gone on with {carried.starts} times; "
        f"{len(measured)} measurements, at most {most_at_once(measured)} at once"
    )
    for each in found:
        print(f"FAULT: {each}")
    print(f"{len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
