"""Runs that ship with the lab: read like one's own, told apart from them, and below them."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

import perflab
from perflab.analysis.noise import doubt
from perflab.cli import app
from perflab.errors import ParameterError, RecordingError, RunNotFound
from perflab.figures.view import to_csv
from perflab.paths import project_root, reference_dir
from perflab.recordings import Run, is_reference, reference_runs
from perflab.recordings.published_rows import Row
from perflab.reports.figures import views_of
from perflab.reports.ledger import (
    LEDGER_FILE,
    Entry,
    entries,
    ledger,
    reference_table,
    rows,
    shown_ledger,
)
from perflab.reports.ledger.entry import SAME
from perflab.trials.plan import RunPlan
from perflab.trials.summary import cpu_share
from tests.support.children import child
from tests.support.synthetic import write_run
from tests.systems.planned import plan_of

SCRIPT = runpy.run_path(str(project_root() / "scripts" / "reference.py"))
pack, without_rows, has_defaults = (SCRIPT[x] for x in ("pack", "without_rows", "has_defaults"))
NAME = "synchronous_commit"


def measured(root: Path, run_id: str, blocks: int = 8, **others: int) -> Run:
    """Return a run of today's experiment with planted values."""
    plan = plan_of(NAME, seed=1, blocks=blocks, **others)
    return write_run(
        root, run_id=run_id, requests=40, noise=0.01, blocks=blocks, contrasts=plan.contrasts,
        parameters=plan.parameters,
    )  # fmt: skip


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Ship one run; there are no others."""
    for name, folder in {"RUNS": "own", "REFERENCE": "reference", "STATE": "state"}.items():
        (tmp_path / folder).mkdir(mode=0o700)
        monkeypatch.setenv(f"PERFLAB_{name}", str(tmp_path / folder))
    run = measured(tmp_path / "elsewhere", "shipped")
    pack(run, tmp_path / "reference")
    reference_table().to_csv(tmp_path / "reference" / LEDGER_FILE, index=False)
    return run


@pytest.mark.promise
def test_a_figure_that_needs_requests_is_drawn_from_the_table_that_ships(tmp_path: Path) -> None:
    run = measured(tmp_path / "whole", "shipped", blocks=2)
    (view,) = (view for view in views_of(run) if view.name == "latency_ecdf")
    table = to_csv(view.shown(run))
    folder = tmp_path / "reference"
    folder.mkdir()
    pack(run, folder, {"views/latency_ecdf.csv": table})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFLAB_REFERENCE", str(folder))
        (shipped,) = reference_runs()
    assert "requests" in shipped.missing
    assert to_csv(view.shown(shipped)) == table


def test_of_several_runs_that_ship_the_one_with_the_defaults_is_shown(
    tmp_path: Path, shipped: Run
) -> None:
    later = measured(tmp_path / "elsewhere", "taken-later", blocks=6)
    pack(later, tmp_path / "reference")
    assert perflab.open_run(f"reference:{NAME}").run_id == shipped.run_id
    main = measured(tmp_path / "elsewhere", "main", blocks=6)
    pack(main, tmp_path / "reference", {"main": ""})
    assert shipped.record.blocks > main.record.blocks
    assert perflab.open_run(f"reference:{NAME}").run_id == "main"


def judged(backend: str = "") -> Entry:
    return next(entry for entry in ledger("inference", backend) if entry.judged)


def test_a_shipped_run_says_the_same_as_the_whole_one(shipped: Run) -> None:
    (run,) = reference_runs()
    assert (run.run_id, run.problems, run.missing) == ("shipped", [], ["requests"])
    assert is_reference(run)
    assert not is_reference(shipped)
    tables = [perflab.findings(each).table.to_csv() for each in (run, shipped)]
    assert tables[0] == tables[1]


@pytest.mark.usefixtures("shipped")
def test_it_answers_rows_until_there_is_a_run_of_ones_own(tmp_path: Path) -> None:
    assert (judged().run_id, judged().shipped) == ("shipped", True)
    shown = shown_ledger(ledger("inference"))
    assert shown.text["what became of it"].str.contains("reference run shipped").any()
    assert "1 run of the reference: measured on " in shown.notes[1]
    measured(tmp_path / "own", "mine", blocks=6)
    assert (judged().run_id, judged().shipped) == ("mine", False)
    assert len(shown_ledger(ledger("inference")).notes) == 1


@pytest.mark.promise
def test_what_ships_as_doubtful_says_so_without_the_run_being_read(
    tmp_path: Path, shipped: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judged().doubt == ""
    run = measured(tmp_path / "elsewhere", "once", fresh_blocks=0)
    pack(run, tmp_path / "reference")
    why = doubt(run)
    (tmp_path / "reference" / f"{shipped.run_id}.tar.xz").unlink()
    reference_table().to_csv(tmp_path / "reference" / LEDGER_FILE, index=False)
    monkeypatch.setattr(Run, "table", lambda *_: pytest.fail("a run was read"))
    assert judged().shipped
    assert judged().doubt == why != ""
    same = next(entry for entry in ledger("inference") if entry.outcome == SAME and entry.doubt)
    assert "doubtful" in shown_ledger([same]).text["what became of it"].item()


def on_docker(run: Run) -> Run:
    record = run.path / "run.json"
    record.write_text(re.sub(r'("backend": *)"process"', r'\1"docker"', record.read_text()))
    return perflab.open_run(str(run.path))


@pytest.mark.usefixtures("shipped")
def test_what_ships_is_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []

    def noted(row: Row) -> RunPlan:
        planned.append(row.key)
        return rows.plan_of(row)

    monkeypatch.setattr(entries, "plan_of", noted)
    answered = {entry.row.key for entry in ledger("inference") if entry.shipped}
    assert answered
    assert planned
    assert not answered.intersection(planned)


def test_a_run_with_the_defaults_is_shown_for_its_experiment_unless_docker_ran_it(
    tmp_path: Path,
) -> None:
    run = measured(tmp_path, "main")
    assert has_defaults(run)
    assert not has_defaults(measured(tmp_path, "other", workers=1))
    assert not has_defaults(on_docker(run))


@pytest.mark.usefixtures("shipped")
def test_what_ships_of_both_backends_answers_on_each(tmp_path: Path) -> None:
    run = on_docker(measured(tmp_path / "elsewhere", "on-docker"))
    pack(run, tmp_path / "reference")
    reference_table().to_csv(tmp_path / "reference" / LEDGER_FILE, index=False)
    answers = {backend: judged(backend).run_id for backend in ("", "process", "docker")}
    assert answers == {"": "shipped", "process": "shipped", "docker": "on-docker"}


@pytest.mark.usefixtures("shipped")
def test_a_notebook_shows_it_and_measures_nothing() -> None:
    run = perflab.run(NAME, {"from_run": "reference"})
    assert is_reference(run)
    asked = perflab.notebook_parameters(NAME, {"from_run": "reference"})
    assert (asked.from_run, asked.blocks) == ("shipped", 8)
    assert perflab.open_run(f"reference:{NAME}").run_id == perflab.open_run("ship").run_id
    with pytest.raises(RunNotFound, match=f"has no run of 'serialization'.*it has {NAME}"):
        perflab.run("serialization", {"from_run": "reference"})
    with pytest.raises(ParameterError, match="blocks"):
        perflab.notebook_parameters(NAME, {"from_run": "reference", "blocks": 3})


@pytest.mark.usefixtures("shipped")
def test_it_is_listed_as_what_it_is_and_is_never_the_latest() -> None:
    printed = CliRunner().invoke(app, ["runs", "--reference"]).output
    assert "shipped" in printed
    assert "reference" in printed
    with pytest.raises(RunNotFound, match="has finished"):
        perflab.open_run("latest")


# All have the lab imported before any begins to read.
READER = """
import sys
from perflab.recordings import reference_runs
print("ready", flush=True)
sys.stdin.read()
print(len(reference_runs()))
"""


def test_what_ships_is_whole_and_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFLAB_REFERENCE", str(project_root() / "data" / "reference"))
    runs = reference_runs()
    assert len(runs) >= 7
    assert [run.problems for run in runs] == [[]] * len(runs)
    assert {run.record.state for run in runs} == {"finished"}
    assert sum(path.stat().st_size for path in reference_dir().iterdir()) < 15e6


@pytest.mark.usefixtures("shipped")
def test_several_who_read_it_for_the_first_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    state = tmp_path / "new"
    with ExitStack() as stack:
        readers = [
            stack.enter_context(
                child(
                    READER, env={**os.environ, "PERFLAB_STATE": str(state)}, stdin=subprocess.PIPE
                )
            )
            for _ in range(4)
        ]
        for reader in readers:
            assert reader.stdin is not None
            reader.stdin.close()
        assert [reader.stdout.read() for reader in readers if reader.stdout] == ["1\n"] * 4
    assert len([*(state / "reference").iterdir()]) == 1


def test_another_version_is_unpacked_anew_and_a_damaged_one_named(
    shipped: Run, tmp_path: Path
) -> None:
    (before,) = reference_runs()
    archive = pack(measured(tmp_path / "again", "shipped", blocks=6), tmp_path / "reference")
    (after,) = reference_runs()
    assert (before.record.blocks, after.record.blocks) == (shipped.record.blocks, 6)
    archive.write_bytes(archive.read_bytes()[:200])
    for _ in range(2):
        with pytest.raises(RecordingError, match=r"shipped\.tar\.xz: .*'git checkout' brings it"):
            reference_runs()


def test_a_run_that_is_not_shown_ships_with_few_samples_and_the_same_shares_of_cpu(
    tmp_path: Path,
) -> None:
    run = write_run(tmp_path / "runs", blocks=1, requests=4000)
    few = without_rows(run, tmp_path / "few" / run.run_id, all_samples=False)
    assert few.problems == []
    assert len(few.table("samples")) < 0.6 * len(run.table("samples"))
    for trial in run.trials().to_dict("records"):
        shares = [
            cpu_share(samples[samples["service"] == service], trial["begin_ns"], trial["end_ns"])
            for samples in (one.table("samples", [trial["trial_id"]]) for one in (run, few))
            for service in sorted(samples["service"].unique())
        ]
        assert shares[: len(shares) // 2] == shares[len(shares) // 2 :]
