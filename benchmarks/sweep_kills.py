"""SIGKILL at random instants over sweeps: what is lost, repeated, changed or left behind?

A user's sweep: ``perflab sweep`` over cells of short trials, as plain processes, with figures.
Again and again one of its processes is killed, whichever chance takes: the command, the kernel of a
cell, the conductor (whose thread the sampler is), the service, the load worker, a reaper, the
keeper of logs. A command that is gone is gone on with as its user would (``--resume``), at once or
after a while. Then the sweep is brought to its end, and compared with its plan:

- lost: a cell that is not done, a trial of a finished run that is not there, a run with trials that
  no cell knows;
- truncated: a Parquet file, a notebook or an index that cannot be read, temporary files;
- repeated: a cell that was done twice, a trial that counts twice;
- changed: what was committed before a kill (trials, notebooks, figures, lines of the journal) and
  has other bytes at the end;
- left: a process, a service, a lock, a temporary folder that outlives the sweep, and what a victim
  left without a master for more than 20 s.

The exit status is 1 where there is any of that.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pandas as pd
import psutil
import pyarrow.parquet as pq

from perflab.host.lock import holder
from perflab.paths import environments_dir
from perflab.recordings import Run, list_runs
from perflab.stacks import leftovers
from perflab.sweeps.cells import open_sweep
from perflab.sweeps.journal import Journal

PERFLAB = str(Path(sys.executable).with_name("perflab"))
WITHIN_S = 20.0
LONGEST_WAIT_S = 5.0
# A command needs some seconds before it begins a cell: not all kills are to meet it there.
IN_A_CELL = 0.9
KILLS_PER_SWEEP = 8
SOME_FAILED = 3
MOST_STARTS = 60
BLOCKS, RATES = 2, (50, 100)
SWEEP = f"""
retries: 2
parameters: {{backend: process, blocks: {BLOCKS}, client: [lean], rate: {list(RATES)}}}
cells:
  - notebook: client_overhead
    parameters: {{warmup_s: 0, duration_s: 0.5}}
    grid: {{body_bytes: %s}}
"""
NOTEBOOK = (
    "body_bytes = 1",
    "import perflab\nrun = perflab.run('client_overhead', "
    "perflab.notebook_parameters('client_overhead', globals()))",
    "perflab.verdict(run)",
    "perflab.save(run)",
)
# By a word of the command; what knows none of them and carries the lab's labels is a service.
KINDS = {
    "ipykernel_launcher": "kernel",
    "perflab.trials.conductor": "conductor",
    "perflab.stacks.reaper": "reaper",
    "perflab.load.worker": "load worker",
    "log_keeper.py": "log keeper",
    "sweep": "command",
}
VICTIMS = (*KINDS.values(), "service")


def write_notebook(folder: Path) -> None:
    """Write the notebook of the cells into a new folder, under the name of a shipped one."""
    folder.mkdir()
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in NOTEBOOK],
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "language_info": {"name": "python"},
        },
    )
    notebook.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(notebook, folder / "client_overhead.ipynb")


def kernel_folders(pids: set[int]) -> list[Path]:
    """Return the folders of kernels' sockets that belong to commands of these ids."""
    found = []
    for folder in Path("/tmp").glob("perflab-kernel-*"):
        with suppress(OSError, ValueError):
            if int((folder / "owner").read_text().split("/")[1]) in pids:
                found.append(folder)
    return found


@dataclass
class Kill:
    """One kill: whom, in which sweep, how long until what it left without a master was gone."""

    victim: str
    sweep: int
    clean_s: float
    how: str = ""

    def row(self, number: int) -> str:
        """Return the table's line."""
        return f"{number:>4}  {self.sweep:>5}  {self.victim:<12}{self.clean_s:>8.1f}  {self.how}"


@dataclass
class Tally:
    """What was seen over all kills."""

    kills: list[Kill] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    cells: int = 0
    attempts: int = 0
    trials: int = 0
    files: int = 0
    empty_runs: set[str] = field(default_factory=set)


class Bench:
    """A folder with everything that a sweep writes, and the processes that belong to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs, self.figures, self.sweeps = root / "runs", root / "figures", root / "sweeps"
        self.temporary = root / "tmp"
        self.temporary.mkdir()
        self.pids: set[int] = set()

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return the processes of the sweep that are alive, by what they do."""
        found: dict[str, list[psutil.Process]] = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.pid != os.getpid() and (kind := self._kind(process)):
                    found.setdefault(kind, []).append(process)
        return found

    def _kind(self, process: psutil.Process) -> str:
        words = process.cmdline()
        environment = process.environ()
        if not any(str(self.root) in text for text in (*words, *environment.values())):
            return ""
        known = (kind for word, kind in KINDS.items() if any(_ends(it, word) for it in words))
        return next(known, "service" if "PERFLAB_SERVICE" in environment else "other")

    def left(self) -> list[str]:
        """Return what there is of a sweep besides its results."""
        found = [
            f"{kind} (pid {each.pid})"
            for kind, every in self.processes().items()
            for each in every
            if is_alive(each)
        ]
        found += [f"{item.service} of {item.stack}" for item in leftovers.everything()]
        found += ["the host's lock"] if holder() else []
        found += [f"{path}" for path in self.temporary.iterdir()]
        found += [f"{path}" for path in kernel_folders(self.pids)]
        half = (self.runs, self.figures, self.sweeps)
        found += [f"{path}" for place in half for path in place.rglob(".tmp-*")]
        return found


def _ends(text: str, word: str) -> bool:
    return text == word or text.endswith(f"/{word}")


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie is none."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


class Committed:
    """What was committed so far, by the hashes of its bytes."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._digests: dict[Path, str] = {}
        self._journals: dict[Path, bytes] = {}

    def __len__(self) -> int:
        return len(self._digests)

    def note(self) -> None:
        """Note what has been committed by now; nothing of it may ever change."""
        for file in [*self._bench.runs.glob("*/trials/b*/*"), *self._of_done_cells()]:
            if file not in self._digests:
                self._digests[file] = _digest(file)
        for file in self._bench.sweeps.glob("[!.]*/journal.jsonl"):
            content = file.read_bytes()
            self._journals[file] = content[: content.rfind(b"\n") + 1]

    def _of_done_cells(self) -> Iterator[Path]:
        for folder in self._bench.sweeps.glob("[!.]*"):
            journal = Journal(folder)
            for cell in journal.sessions[-1].cells if journal.sessions else ():
                for attempt in journal.cell(cell).attempts:
                    if attempt.ended and attempt.ended.done:
                        yield self._bench.runs / attempt.ended.run_id / "run.json"
                        yield from map(Path, (attempt.ended.notebook, *attempt.ended.figures))

    def faults(self) -> Iterator[str]:
        """Yield what is lost or changed of it."""
        for file, digest in self._digests.items():
            if not file.exists():
                yield f"lost: {file}"
            elif _digest(file) != digest:
                yield f"changed: {file}"
        for file, content in self._journals.items():
            if not file.read_bytes().startswith(content):
                yield f"changed: {file}"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def folders_of(bench: Bench, file: Path) -> list[Path]:
    """Return the folders of a sweep file, oldest first."""
    return sorted(bench.sweeps.glob(f"[!.]*-{file.stem}-*"))


class Command:
    """The command of a sweep, as its user types it, time and again."""

    def __init__(self, bench: Bench, file: Path) -> None:
        self._bench = bench
        self._file = file
        self.starts = 0
        self.log = file.with_suffix(".log")

    def start(self, *words: str) -> None:
        """Type it."""
        self.starts += 1
        if self.starts > MOST_STARTS:
            sys.exit(f"started {MOST_STARTS} times and not done: see what it said\n{self.said()}")
        with self.log.open("a") as log:
            self._child = subprocess.Popen(
                [PERFLAB, "sweep", str(self._file), *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._bench.pids.add(self._child.pid)

    def go_on(self) -> None:
        """Go on with it; where it was killed before it had a folder, begin again."""
        self.start(*(["--resume"] if folders_of(self._bench, self._file) else []))

    def code(self, within_s: float) -> int | None:
        """Return how it ended; None where it goes on for so long."""
        try:
            return self._child.wait(within_s)
        except subprocess.TimeoutExpired:
            return None

    def said(self) -> str:
        """Return the last lines that it said."""
        return "\n".join(self.log.read_text().splitlines()[-12:])


def play(
    bench: Bench, number: int, cells: int, kills: int, chance: random.Random, tally: Tally
) -> None:
    """Carry out one sweep with so many kills at most, and compare it with its plan."""
    file = bench.root / f"kills{number}.yaml"
    file.write_text(SWEEP % list(range(100, 100 + cells)))
    command, committed = Command(bench, file), Committed(bench)
    command.start()
    done = 0
    while (code := command.code(_pause(bench, command, chance) if done < kills else WITHIN_S)) != 0:
        if code is not None:
            if code != SOME_FAILED:
                tally.faults.append(f"sweep {number} ended with {code}:\n{command.said()}")
            command.go_on()
        elif done < kills:
            committed.note()
            if kill := _killed(bench, command, number, chance, tally):
                done += 1
                tally.kills.append(kill)
                print(kill.row(len(tally.kills)), flush=True)
    committed.note()
    tally.faults += [f"sweep {number}: {each}" for each in committed.faults()]
    tally.faults += [f"sweep {number}: {each}" for each in _against_plan(bench, file, tally)]
    tally.faults += [f"sweep {number}: left: {each}" for each in _left_at_the_end(bench)]
    tally.files += len(committed)
    # Also where the benchmark is ended before its last kill.
    print(f"sweep {number}: {done} kills, {len(tally.faults)} faults so far", flush=True)
    for fault in tally.faults:
        print(f"FAULT: {fault}", flush=True)


def _pause(bench: Bench, command: Command, chance: random.Random) -> float:
    """Return how long to wait before the next kill; most wait until a cell is under way."""
    deadline = time.monotonic() + WITHIN_S
    if chance.random() < IN_A_CELL:
        while "kernel" not in bench.processes() and time.monotonic() < deadline:
            if command.code(0.1) is not None:
                break
    return chance.uniform(0.2, LONGEST_WAIT_S)


def _killed(
    bench: Bench, command: Command, number: int, chance: random.Random, tally: Tally
) -> Kill | None:
    """Kill one process; None where there was none any more."""
    there = {kind: each for kind, each in bench.processes().items() if kind in VICTIMS}
    if not there:
        return None
    kind = chance.choice(sorted(there))
    victim = chance.choice(sorted(there[kind], key=lambda each: each.pid))
    how = "waits, then resumes" if chance.random() < 0.5 else "resumes at once"
    try:
        orphans = victim.children(recursive=True)
        victim.kill()
    except psutil.NoSuchProcess:
        return None
    began = time.monotonic()
    if kind != "command":
        return Kill(kind, number, _until_gone(orphans, began, kind, tally))
    command.code(WITHIN_S)
    if how == "resumes at once":
        command.go_on()
    kill = Kill(kind, number, _until_gone(orphans, began, kind, tally), how)
    if how != "resumes at once":
        command.go_on()
    return kill


def _until_gone(orphans: list[psutil.Process], began: float, kind: str, tally: Tally) -> float:
    """Return how long it took until what a victim left without a master was gone."""
    while alive := [each for each in orphans if is_alive(each)]:
        if time.monotonic() > began + WITHIN_S:
            pids = ", ".join(str(each.pid) for each in alive)
            tally.faults.append(f"left for {WITHIN_S:g} s by a killed {kind}: {pids}")
            return float("inf")
        time.sleep(0.05)
    return time.monotonic() - began if orphans else 0.0


def _left_at_the_end(bench: Bench) -> list[str]:
    deadline = time.monotonic() + WITHIN_S
    while (left := bench.left()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def _against_plan(bench: Bench, file: Path, tally: Tally) -> Iterator[str]:
    """Yield where a finished sweep is not what its file asks for."""
    plan = open_sweep(file)
    (folder,) = folders_of(bench, file)
    index, journal = pd.read_parquet(folder / "index.parquet"), Journal(folder)
    if list(index["cell"]) != [cell.id for cell in plan.cells] or set(index["state"]) != {"done"}:
        yield f"lost: the index has {list(zip(index['cell'], index['state'], strict=True))}"
    if not (folder / "index.html").read_text().rstrip().endswith("</html>"):
        yield f"truncated: {folder}/index.html"
    if index["run_id"].nunique() != len(index):
        yield f"repeated: runs of cells are {list(index['run_id'])}"
    for cell in plan.cells:
        attempts = journal.cell(cell.id).attempts
        outcomes = [each.outcome for each in attempts]
        if outcomes.count("done") != 1:
            yield f"repeated: cell {cell.id} was {', '.join(outcomes)}"
        for ended in (each.ended for each in attempts if each.outcome == "failed"):
            if ended and not ended.infrastructure:
                yield f"cell {cell.id} failed by its own fault: {ended.kind}: {ended.error}"
        tally.attempts += len(attempts)
    tally.cells += len(index)
    for row in index.itertuples():
        yield from _unreadable(Path(str(row.executed)), json.loads(str(row.figures)))
        yield from _against_order(Run(bench.runs / str(row.run_id)), tally)
    known = {run_id for name in bench.sweeps.glob("[!.]*") for run_id in _runs_of(name)}
    for run in list_runs(bench.runs):
        if run.run_id not in known | tally.empty_runs:
            tally.empty_runs.add(run.run_id)
            if len(run.trials()):
                yield f"lost: run {run.run_id} has {len(run.trials())} trials and no cell"
    for table in bench.runs.rglob("*.parquet"):
        try:
            pq.read_table(table)
        except (OSError, ValueError) as error:
            yield f"truncated: {table}: {error}"


def _runs_of(folder: Path) -> set[str]:
    return set(pd.read_parquet(folder / "index.parquet")["run_id"])


def _unreadable(notebook: Path, figures: list[str]) -> Iterator[str]:
    try:
        nbformat.validate(nbformat.read(notebook, as_version=4))
    except (OSError, ValueError, nbformat.ValidationError) as error:
        yield f"truncated: {notebook}: {error}"
    yield from (f"truncated: {each}" for each in figures if "</svg>" not in Path(each).read_text())


def _against_order(run: Run, tally: Tally) -> Iterator[str]:
    """Yield where a run does not have each trial of its plan exactly once."""
    trials = run.trials()
    current = trials[~trials["superseded"].astype(bool)]
    places = sorted(zip(current["block"], current["position"], strict=True))
    if run.record.state != "finished" or run.problems:
        yield f"truncated: run {run.run_id} is {run.record.state}: {'; '.join(run.problems)}"
    if places != list(itertools.product(range(BLOCKS), range(len(RATES)))):
        yield f"lost or repeated: run {run.run_id} has the trials {places}"
    tally.trials += len(places)


@contextmanager
def own_bench() -> Iterator[Bench]:
    """Give a folder of its own; every process that works with it is ended, and it is removed."""
    kept = str(environments_dir())
    with tempfile.TemporaryDirectory(
        prefix="perflab-sweep-kills-", dir="/var/tmp", ignore_cleanup_errors=True
    ) as name:
        root = Path(name)
        root.chmod(0o755)
        places = {
            "STATE": "state", "RUNS": "runs", "FIGURES": "figures", "SWEEPS": "sweeps",
            "LOCK": "host.lock", "NOTEBOOKS": "notebooks",
        }  # fmt: skip
        os.environ.update({f"PERFLAB_{key}": str(root / place) for key, place in places.items()})
        os.environ.setdefault("PERFLAB_ENVIRONMENTS", kept)
        os.environ["TMPDIR"] = str(root / "tmp")
        write_notebook(root / "notebooks")
        bench = Bench(root)
        try:
            yield bench
        finally:
            for each in itertools.chain.from_iterable(bench.processes().values()):
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            leftovers.remove_of_kind(None)
            for folder in kernel_folders(bench.pids):
                shutil.rmtree(folder, ignore_errors=True)


def _print_by_victim(kills: list[Kill]) -> None:
    print(f"\n{'killed':<12}{'times':>6}{'gone after, median':>20}{'longest':>9}  s")
    for kind in VICTIMS:
        seconds = [each.clean_s for each in kills if each.victim == kind]
        if seconds:
            middle, longest = statistics.median(seconds), max(seconds)
            print(f"{kind:<12}{len(seconds):>6}{middle:>20.1f}{longest:>9.1f}")


def main() -> int:
    """Kill, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=50, help="kills in all")
    parser.add_argument("--cells", type=int, default=4, help="cells of each sweep")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=45, help="it gives up after these")
    given = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("ended before the last kill"))
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done within {given.minutes:g} min"))
    signal.setitimer(signal.ITIMER_REAL, 60 * given.minutes)
    tally, chance = Tally(), random.Random(given.seed)
    print(f"{'kill':>4}  {'sweep':>5}  {'killed':<12}{'gone, s':>8}  then")
    with own_bench() as bench:
        for sweep in itertools.count(1):
            left = given.times - len(tally.kills)
            if left <= 0:
                break
            play(bench, sweep, given.cells, min(left, KILLS_PER_SWEEP), chance, tally)
    _print_by_victim(tally.kills)
    print(
        f"\n{len(tally.kills)} kills, {tally.cells} cells done in {tally.attempts} attempts, "
        f"{tally.trials} trials and {tally.files} committed files as they were; "
        f"{len(tally.empty_runs)} runs were ended before anything was measured"
    )
    print(f"{len(tally.faults)} faults")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
