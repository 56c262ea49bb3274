"""The figure of a profile: a bar per function and treatment, and the call chains beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import perflab
from perflab.analysis.profiles import function_shares
from perflab.figures.plots.cpu import SHOWN
from perflab.recordings import Run
from perflab.reports.figures import save_all
from perflab.reports.section import write_section
from tests.support.synthetic import profiled_run

BEFORE = {"main (run.py);dumps (json.py)": 400, "main (run.py);write (hub.py)": 600}
AFTER = {"main (run.py);dumps (json.py)": 200, "main (run.py);write (hub.py)": 600}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return profiled_run(
        tmp_path, {"a": BEFORE, "b": AFTER}, noise=0.03, seen_share={"a": 0.5, "b": 0.4}
    )


def test_a_function_that_only_one_treatment_has_takes_no_time_in_the_other(tmp_path: Path) -> None:
    many = {f"f{number} (x.py)": 10 + number for number in range(2 * SHOWN)}
    run = profiled_run(tmp_path, {"a": many, "b": {"g (x.py)": 500}}, blocks=1)
    table = function_shares(run, SHOWN)
    assert table["function"].nunique() == SHOWN
    shares = table[table["function"] == "g (x.py)"].set_index("treatment")
    assert shares["percent"].to_dict() == pytest.approx({"variant=a": 0, "variant=b": 50})
    assert shares["low"].isna().all()
    assert perflab.draw(run, "profile").axes


def test_the_call_chains_of_all_trials_are_saved_for_speedscope_and_linked(
    run: Run, tmp_path: Path
) -> None:
    saved = save_all(run, tmp_path / run.run_id)
    (chains,) = (path for path in saved if path.suffix == ".json")
    document = json.loads(chains.read_text())
    names = [profile["name"] for profile in document["profiles"]]
    assert len(names) == 12
    assert names[0] == "variant=a, block 0: t"
    count = sum(len(profile["samples"]) for profile in document["profiles"])
    assert count == run.table("calls")["samples"].sum()
    section = write_section(run, tmp_path, saved).read_text()
    assert f"[call chains for speedscope](<{run.run_id}/profile.json>)" in section
