"""Sweeps over several hosts: a real scheduler, and workers that pose as hosts."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from perflab.recordings import Run, list_runs
from perflab.sweeps.journal import Journal
from tests.sweeps.hosts.hosts import Host, cluster
from tests.sweeps.swept import TO_BE_KILLED, read_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def spans(run: Run) -> tuple[int, int]:
    """Return the first and the last instant of a run's requests, by its host's clock."""
    # Also of trials that neighbours disturbed: they were measured at some time.
    requests = run.requests(None, run.trials()["trial_id"].tolist())
    return int(requests["started_ns"].min()), int(requests["done_ns"].max())


def test_two_hosts_share_the_cells_and_never_measure_two_at_a_time(tmp_path: Path) -> None:
    with cluster(tmp_path, [20, 21, 22, 13]) as made:
        hosts = [Host(made, "one"), Host(made, "two")]
        told = made.swept.done(*made.options, code=3)
        index = made.swept.cells()
        assert list(index["state"]) == ["done", "done", "done", "failed"], told
        assert set(index["host"]) == {"one", "two"}
        for host in hosts:
            measured = sorted(spans(run) for run in host.runs())
            assert measured
            assert all(before[1] < after[0] for before, after in pairwise(measured))
        # All is read from the store alone: runs, executed notebooks, and what a failed cell left.
        published = list_runs(made.store / "runs")
        assert {run.record.run_id for run in published} == set(index["run_id"][:3])
        assert all(run.record.state == "finished" for run in published)
        for path in (*index["notebook"], index["log"][3]):
            assert Path(path).is_relative_to(made.store)
            assert Path(path).is_file()
        assert "planted" in Path(index["log"][3]).read_text()
        assert "on one" in (made.swept.folder / "index.html").read_text()


def test_a_lost_workers_cell_is_taken_up_elsewhere_and_its_half_run_is_kept(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, [TO_BE_KILLED]) as made:
        first = Host(made, "first")
        second = Host(made, "second")
        child = made.swept.begun(*made.options)
        read_until(child, "1/3")
        journal = Journal(made.swept.folder)
        (cell,) = journal.sessions[0].cells
        lost, other = (
            (first, second) if journal.cell(cell).attempts[0].begun.host == "first"
            else (second, first)
        )  # fmt: skip
        family = psutil.Process(lost.worker.pid).children(recursive=True)
        os.kill(lost.worker.pid, signal.SIGKILL)
        told, _ = child.communicate(timeout=300)
        assert child.returncode == 0, told
        half, whole = Journal(made.swept.folder).cell(cell).attempts
        assert half.ended is not None
        assert (half.ended.kind, half.ended.host) == ("WorkerLost", lost.folder.name)
        assert whole.begun.host == other.folder.name
        assert whole.begun.goes_on_with == ""
        _, alive = psutil.wait_procs(family, timeout=90)
        assert alive == []
        (kept,) = lost.runs()
        assert (kept.record.run_id, kept.record.state) == (half.run_id, "interrupted")
        (finished,) = list_runs(made.store / "runs")
        assert finished.record.run_id == whole.run_id != half.run_id
        # Both are told: which run counts, and which was left half on which host.
        page = (made.swept.folder / "index.html").read_text()
        assert f"(WorkerLost) on {lost.folder.name} run {half.run_id}" in page


def test_a_host_that_leaves_hands_its_cell_on_and_not_to_one_that_came_later(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, [TO_BE_KILLED, TO_BE_KILLED + 1]) as made:
        hosts = {name: Host(made, name) for name in ("one", "two")}
        child = made.swept.begun(*made.options)
        read_until(child, "2 hosts: one, two")
        late = Host(made, "late")
        read_until(child, "1/3")
        journal = Journal(made.swept.folder)
        under_way = [
            (cell, attempt.begun.host)
            for cell in journal.sessions[0].cells
            for attempt in journal.cell(cell).attempts
            if attempt.run_id
        ]
        cell, leaving = under_way[0]
        (stays,) = {*hosts} - {leaving}
        hosts[leaving].worker.send_signal(signal.SIGTERM)
        told, _ = child.communicate(timeout=150)
        assert child.returncode == 0, told
        assert hosts[leaving].worker.wait(timeout=60) == 0
        half, whole = Journal(made.swept.folder).cell(cell).attempts
        assert (half.outcome, half.begun.host) == ("interrupted", leaving)
        assert (whole.outcome, whole.begun.host) == ("done", stays)
        assert whole.begun.goes_on_with == ""
        assert set(made.swept.cells()["host"]) == {stays}
        assert len(hosts[leaving].runs()) == 1, "it began no other"
        assert late.runs() == []


def test_a_sweep_that_is_ended_ends_its_cells_on_their_hosts_and_goes_on_there(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, [TO_BE_KILLED]) as made:
        host = Host(made, "only")
        child = made.swept.begun(*made.options)
        read_until(child, "1/3")
        child.send_signal(signal.SIGTERM)
        told, _ = child.communicate(timeout=120)
        assert child.returncode == 130, told
        assert psutil.Process(host.worker.pid).children() == []
        (half,) = host.runs()
        assert half.record.state == "interrupted"
        assert not (made.store / "runs").exists()
        assert list(made.swept.cells()["state"]) == ["interrupted"]

        made.swept.done(*made.options, "--resume", code=0)
        (run,) = host.runs()
        assert (run.record.run_id, run.record.state) == (half.record.run_id, "finished")
        assert len(run.record.sessions) == 2


def test_what_would_not_compare_or_never_end_is_refused_before_anything_is_measured(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, [20]) as made:
        told = made.swept.done(*made.options, code=1)
        assert "the scheduler has no worker; start one on each host with 'perflab worker" in told
        notebooks = tmp_path / "others"
        notebooks.mkdir()
        content = (tmp_path / "notebooks" / "client_overhead.ipynb").read_text()
        (notebooks / "client_overhead.ipynb").write_text(content + "\n")
        Host(made, "one")
        Host(made, "odd", PERFLAB_NOTEBOOKS=str(notebooks))
        told = made.swept.done(*made.options, code=1)
        assert "odd: notebooks.notebook client_overhead (" in told
        assert "one:" not in told
        assert not (tmp_path / "sweeps").exists()


def test_a_scheduler_that_would_measure_again_silently_is_refused(tmp_path: Path) -> None:
    with cluster(tmp_path, [20], allowed_failures=3) as made:
        told = made.swept.done(*made.options, code=1)
        assert "start it with DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0" in told
