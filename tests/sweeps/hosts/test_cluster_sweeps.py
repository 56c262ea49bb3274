"""Sweeps over several hosts: a real scheduler, and workers that stand for hosts."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from perflab.recordings import Run, list_runs
from perflab.sweeps.folder import Journal
from tests.sweeps.hosts.hosts import Host, cluster
from tests.sweeps.swept import TO_BE_KILLED, read_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
NONE_COUNTS = "NoTrialCounts: no trial of the run counts"


def spans(run: Run) -> tuple[int, int]:
    """Return the first and the last instant of a run's requests, by its host's clock."""
    # All trials count here, also those that other load disturbed.
    requests = run.requests(None, run.trials()["trial_id"].tolist())
    return int(requests["started_ns"].min()), int(requests["done_ns"].max())


def test_two_hosts_share_the_cells_and_never_measure_two_at_a_time(tmp_path: Path) -> None:
    with cluster(tmp_path, [20, 21, 22, 13]) as dask:
        hosts = [Host(dask, "one"), Host(dask, "two")]
        output = dask.swept.done(*dask.options, code=3)
        index = dask.swept.cells()
        done = index[index["state"] == "done"]
        # On a busy machine it may be that no trial of a cell counts.
        assert output.count(NONE_COUNTS) == 3 - len(done), output
        assert index["state"][3] == "failed", output
        assert set(index["host"]) == {"one", "two"}
        for host in hosts:
            measured = sorted(spans(run) for run in host.runs())
            assert measured
            assert all(before[1] < after[0] for before, after in pairwise(measured))
        # Everything is there: runs, executed notebooks, and the output of a failed cell.
        published = list_runs(dask.results / "runs")
        assert {run.record.run_id for run in published} >= set(done["run_id"])
        assert all(run.record.state == "finished" for run in published)
        for path in (*index["notebook"], index["log"][3]):
            assert Path(path).is_relative_to(dask.results)
            assert Path(path).is_file()
        assert "planted" in Path(index["log"][3]).read_text()
        assert "on one" in (dask.swept.folder / "index.html").read_text()


def test_a_lost_workers_cell_is_taken_up_elsewhere_and_its_half_run_is_kept(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, [TO_BE_KILLED]) as dask:
        hosts = {name: Host(dask, name) for name in ("first", "second")}
        child = dask.swept.begun(*dask.options)
        read_until(child, "1/8")
        journal = Journal(dask.swept.folder)
        (cell,) = journal.sessions[0].cells
        lost = hosts.pop(journal.cell(cell).attempts[0].begun.host)
        (other,) = hosts.values()
        family = psutil.Process(lost.worker.pid).children(recursive=True)
        os.kill(lost.worker.pid, signal.SIGKILL)
        output, _ = child.communicate(timeout=300)
        assert child.returncode == 0, output
        half, whole = Journal(dask.swept.folder).cell(cell).attempts
        assert half.ended is not None
        assert (half.ended.kind, half.ended.host) == ("WorkerLost", lost.folder.name)
        assert whole.begun.host == other.folder.name
        assert whole.begun.goes_on_with == ""
        _, alive = psutil.wait_procs(family, timeout=90)
        assert alive == []
        (unfinished,) = lost.runs()
        assert (unfinished.record.run_id, unfinished.record.state) == (half.run_id, "interrupted")
        (finished,) = list_runs(dask.results / "runs")
        assert finished.record.run_id == whole.run_id != half.run_id
        # The page names the unfinished run and its host.
        page = (dask.swept.folder / "index.html").read_text()
        assert f"(WorkerLost), on {lost.folder.name}, run {half.run_id}" in page


def test_a_host_that_leaves_hands_its_cell_on_and_not_to_one_that_came_later(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, [TO_BE_KILLED, TO_BE_KILLED + 1]) as dask:
        hosts = {name: Host(dask, name) for name in ("one", "two")}
        child = dask.swept.begun(*dask.options)
        read_until(child, "2 hosts: one, two")
        late = Host(dask, "late")
        read_until(child, "1/8")
        journal = Journal(dask.swept.folder)
        under_way = [
            (cell, attempt.begun.host)
            for cell in journal.sessions[0].cells
            for attempt in journal.cell(cell).attempts
            if attempt.run_id
        ]
        cell, leaving = under_way[0]
        (stays,) = {*hosts} - {leaving}
        hosts[leaving].worker.send_signal(signal.SIGTERM)
        output, _ = child.communicate(timeout=150)
        assert child.returncode == 0, output
        assert hosts[leaving].worker.wait(timeout=60) == 0
        half, whole = Journal(dask.swept.folder).cell(cell).attempts
        assert (half.outcome, half.begun.host) == ("interrupted", leaving)
        assert (whole.outcome, whole.begun.host) == ("done", stays)
        assert whole.begun.goes_on_with == ""
        assert set(dask.swept.cells()["host"]) == {stays}
        assert len(hosts[leaving].runs()) == 1, "it began no other"
        assert late.runs() == []


def test_only_hosts_that_compare_measure_and_end_their_cells_with_a_sweep_that_goes_on_there(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, [TO_BE_KILLED]) as dask:
        output = dask.swept.done(*dask.options, code=1)
        assert "the scheduler has no worker; start one on each host with 'perflab worker" in output
        notebooks = tmp_path / "others"
        notebooks.mkdir()
        content = (tmp_path / "notebooks" / "client_overhead.ipynb").read_text()
        (notebooks / "client_overhead.ipynb").write_text(content + "\n")
        host, odd = Host(dask, "only"), Host(dask, "odd", PERFLAB_NOTEBOOKS=str(notebooks))
        output = dask.swept.done(*dask.options, code=1)
        assert "odd: notebooks.notebook client_overhead (" in output
        assert "only:" not in output
        assert not (tmp_path / "sweeps").exists()
        odd.worker.terminate()
        odd.worker.wait(timeout=60)

        child = dask.swept.begun(*dask.options)
        read_until(child, "1/8")
        child.send_signal(signal.SIGTERM)
        output, _ = child.communicate(timeout=120)
        assert child.returncode == 130, output
        assert psutil.Process(host.worker.pid).children() == []
        (half,) = host.runs()
        assert half.record.state == "interrupted"
        assert not (dask.results / "runs").exists()
        assert list(dask.swept.cells()["state"]) == ["interrupted"]

        dask.swept.done(*dask.options, "--resume", code=0)
        (run,) = host.runs()
        assert (run.record.run_id, run.record.state) == (half.record.run_id, "finished")
        assert len(run.record.sessions) == 2
