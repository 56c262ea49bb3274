"""The plan of a sweep, its journal, and its index."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.analysis import noise
from perflab.errors import (
    HostBusy,
    NotebookFailed,
    ParameterError,
    RecordingError,
    ResumeRefused,
)
from perflab.sweeps import attempt, execution
from perflab.sweeps.attempt import resume_parameters
from perflab.sweeps.cells import Cell, Sweep, open_sweep
from perflab.sweeps.folder import (
    AttemptBegun,
    AttemptEnded,
    Journal,
    RunMade,
    locked,
    new_folder,
    newest_folder,
    refuse_changes,
    session_now,
    write_index,
)
from perflab.trials.progress import PROGRESS_FILE, Event, RunBegun
from tests.cli.conftest import Tell
from tests.support.synthetic import write_run

TWO = "cells:\n  - notebook: client_overhead\n    grid: {blocks: [2, 4]}\n"


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    monkeypatch.setenv("PERFLAB_SWEEPS", str(tmp_path / "sweeps"))
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path / "runs"))
    file = tmp_path / "two.yaml"
    file.write_text(TWO)
    return open_sweep(file)


def test_a_dry_run_prints_every_cell_and_starts_nothing(
    sweep: Sweep, tmp_path: Path, perflab: Tell
) -> None:
    output, _ = perflab(tmp_path / "runs", "sweep", str(sweep.file), "--dry-run", COLUMNS="200")
    for cell in sweep.cells:
        assert cell.id in output
        assert cell.label in output
    assert "2 cells, 72 trials" in output
    assert not (tmp_path / "sweeps").exists()


def test_no_cell_is_begun_when_time_is_up_and_later_the_sweep_goes_on(
    sweep: Sweep, tmp_path: Path, perflab: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def done(cell: Cell, number: int, *_: object) -> AttemptEnded:
        return AttemptEnded(cell=cell.id, attempt=number, done=True, seconds=1)

    # The limit is passed after the first cell has begun.
    instants_s = iter([0.0, 1.0, 61.0])
    clock = SimpleNamespace(monotonic=lambda: next(instants_s))
    monkeypatch.setattr(execution, "time", clock)
    monkeypatch.setattr(execution, "carry_out", done)
    # Other tests import what a kernel needs; this process is none for that.
    importlib.import_module("ipykernel")
    importlib.import_module("IPython")
    words = ("sweep", str(sweep.file))
    output, errors = perflab(tmp_path / "runs", *words, "--minutes", "1", code=4)
    assert "time is up; 1 cell not begun" in errors
    assert "2 cells: 1 done, 1 waiting" in output
    assert "2 cells: 2 done" in perflab(tmp_path / "runs", *words, "--resume")[0]


@pytest.mark.promise
def test_a_line_that_a_kill_left_half_is_taken_away_and_all_others_stay(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.add(AttemptBegun(cell="a", attempt=1))
    whole = journal.path.read_bytes()
    for half in (b"{", b'{"event":"run","cell":"a","run_id":"r"}'):
        journal.path.write_bytes(whole + half)
        again = Journal(tmp_path)
        assert again.cell("a").state == "broken off"
        again.add(RunMade(cell="a", run_id="mine"))
        assert Journal(tmp_path).cell("a").run_id == "mine"
        assert journal.path.read_bytes().startswith(whole)
    journal.path.write_bytes(whole + b"nonsense\n" + whole)
    with pytest.raises(RecordingError, match=r"journal.jsonl:2: "):
        Journal(tmp_path)


@pytest.mark.promise
def test_an_unfinished_run_is_resumed_and_a_finished_one_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path / "runs"))
    write_run(tmp_path / "runs", requests=20, run_id="whole")
    write_run(tmp_path / "runs", requests=20, run_id="half", state="interrupted")
    journal = Journal(tmp_path)
    journal.add(AttemptBegun(cell="a", attempt=1))
    cell = journal.cell("a")
    assert resume_parameters(cell.to_go_on_with) == {}
    for run_id, expected in (("half", "resume"), ("whole", "from_run")):
        journal.add(RunMade(cell="a", run_id=run_id))
        assert resume_parameters(cell.to_go_on_with) == {expected: run_id}
    journal.add(AttemptEnded(cell="a", attempt=1, done=False, seconds=1, kind="ResumeRefused"))
    assert cell.to_go_on_with == ""


@pytest.mark.promise
def test_a_cell_of_which_no_trial_counts_has_failed_and_is_measured_anew(
    sweep: Sweep, tmp_path: Path, perflab: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks, resumed = 3, []
    none_valid = [(block, treatment) for block in range(blocks) for treatment in (0, 1)]
    for name, invalid in (("bad", none_valid), ("good", none_valid[1:])):
        runs = tmp_path / "runs"
        write_run(runs, blocks=blocks, requests=40, run_id=name, invalid=invalid)
    made = iter(["bad", "good", "good"])

    def execute(
        _name: str, parameters: Mapping[str, Any], on_event: Callable[[Event], None], _failed: Path
    ) -> Path:
        resumed.append({"resume", "from_run"} & set(parameters))
        on_event(RunBegun(run_id=(run_id := next(made)), path="", backend="process"))
        return tmp_path / "figures" / run_id / "client_overhead.ipynb"

    monkeypatch.setattr(attempt, "execute", execute)
    monkeypatch.setattr(noise, "share_of_others", lambda _: 0.6)
    importlib.import_module("ipykernel")
    importlib.import_module("IPython")
    words = ("sweep", str(sweep.file))
    output, errors = perflab(tmp_path / "runs", *words, code=3)
    assert "2 cells: 1 failed, 1 done" in output
    assert "cell failed: NoTrialCounts: no trial of the run counts: " in errors
    page = Path(output.splitlines()[-1]).read_text()
    assert "NoTrialCounts: no trial of the run counts: " in page
    assert "0 of 6 trials valid; doubtful: others used 60% of the cores" in page
    assert "bad/client_overhead.ipynb" in page
    assert "2 cells: 2 done" in perflab(tmp_path / "runs", *words, "--resume")[0]
    assert resumed == [set(), set(), set()]


def test_one_process_goes_on_with_a_sweep_and_removes_what_a_killed_one_left_half(
    tmp_path: Path,
) -> None:
    with locked(tmp_path), pytest.raises(HostBusy, match="carried out already"), locked(tmp_path):
        raise AssertionError
    cell_folder = tmp_path / "cells" / "a"
    cell_folder.mkdir(parents=True)
    for half in (tmp_path / ".tmp-index.html-0123abcd", cell_folder / ".tmp-a.log-0123abcd"):
        half.write_text("half")
    (cell_folder / "a.log").write_text("whole")
    with locked(tmp_path):
        assert {path.name for path in tmp_path.rglob("*")} == {"cells", "a", "a.log", "lock"}


def test_a_file_may_change_and_changed_code_or_another_machine_is_refused(sweep: Sweep) -> None:
    journal = Journal(new_folder(sweep))
    now = session_now(sweep)
    journal.add(now)
    sweep.file.write_text(TWO.replace("[2, 4]", "[4, 6, 8]"))
    refuse_changes(journal, session_now(open_sweep(sweep.file)))
    code = now.model_copy(update={"sources": {**now.sources, "perflab": "other"}})
    with pytest.raises(ResumeRefused, match="perflab"):
        refuse_changes(journal, code)
    machine = now.model_copy(update={"machine": {**now.machine, "cores": 96}})
    with pytest.raises(ResumeRefused, match="cores"):
        refuse_changes(journal, machine)


@pytest.mark.promise
def test_a_sweep_goes_on_in_the_folder_of_its_own_file_alone(sweep: Sweep, tmp_path: Path) -> None:
    def of(place: str) -> Sweep:
        file = tmp_path / place / "two.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(TWO)
        return open_sweep(file)

    own, other = of("a"), of("b")
    folders = {}
    for each in (own, other):
        folders[each.file] = new_folder(each)
        Journal(folders[each.file]).add(session_now(each))
    assert newest_folder(own) == folders[own.file]
    assert newest_folder(other) == folders[other.file]
    with pytest.raises(ParameterError, match=f"no sweep of {sweep.file} .* is of {other.file}"):
        newest_folder(sweep)
    # The folder of a sweep that was moved is found by its content.
    other.file.unlink()
    assert newest_folder(sweep) == folders[other.file]
    # A kill came before the first session.
    empty = new_folder(other)
    assert newest_folder(sweep) == empty


@pytest.mark.promise
def test_a_notebook_that_fails_leaves_the_run_that_it_began(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(name: str, *_: object) -> None:
        begun = RunBegun(run_id="half", path="", backend="process")
        Path(os.environ[PROGRESS_FILE]).write_text(begun.model_dump_json() + "\n")
        raise NotebookFailed(name, "ValueError", "planted")

    monkeypatch.setattr(attempt, "_execute", fails)
    events: list[Event] = []
    ended = attempt.carry_out(sweep.cells[0], 1, {}, tmp_path / "cell", 0.0, events.append)
    assert (ended.run_id, ended.error, len(events)) == ("half", "planted", 1)

    def full(path: Path, _content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(attempt, "replace_file", full)
    words = r"\.log: cannot be written .* make room on that disk, or move the sweep"
    with pytest.raises(RecordingError, match=words):
        attempt.carry_out(sweep.cells[0], 1, {}, tmp_path / "cell", 0.0, events.append)


def test_the_page_has_a_row_per_cell_and_says_what_others_wrote_as_text(
    sweep: Sweep, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    journal = Journal(folder)
    first = sweep.cells[0].id
    journal.add(AttemptBegun(cell=first, attempt=1))
    notebook = str(tmp_path / "figures of one" / "it.ipynb")
    journal.add(
        AttemptEnded(
            cell=first, attempt=1, done=True, seconds=2, run_id="r", trials=4, valid_trials=3,
            notebook=notebook, verdicts=(("<script>", "not decided", "1.1 [0.9, 1.2]"),),
        )
    )  # fmt: skip
    write_index(folder, sweep, journal)
    page = (folder / "index.html").read_text()
    assert "<script>" not in page
    assert 'href="../figures%20of%20one/it.ipynb"' in page
    assert "3 of 4 trials valid" in page
    assert "2 cells: 1 done, 1 waiting" in page


def test_a_kernel_that_missed_an_interrupt_gets_another(monkeypatch) -> None:
    """Between two cells a kernel ignores a signal."""
    monkeypatch.setattr(execution, "INSIST_EVERY_S", 0.05)
    program = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: signal.signal(signal.SIGINT, signal.SIG_DFL))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    words = [sys.executable, "-c", program, execution.KERNEL]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as kernel:
        assert kernel.stdout is not None
        kernel.stdout.readline()
        execution.EndRequests().take(signal.SIGINT, None)
        assert kernel.wait(timeout=30) == -signal.SIGINT
