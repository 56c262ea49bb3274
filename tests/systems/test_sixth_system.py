"""A system from elsewhere is one folder; nothing in the lab changes for it.

The test copies ``sixth/tally`` to a temporary folder, where the lab must find all of it: service,
body of bytes, table, response, reason, figure, published results, and ready stack. Its run is of
plain processes and quick, so that `make test` checks one run from start to verdict.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

SIXTH = Path(__file__).parent / "sixth"


@dataclass(frozen=True)
class Elsewhere:
    """A folder with a foreign system and its own runs."""

    environment: dict[str, str]

    def python(self, code: str, *words: str) -> str:
        """Run Python there, and return what it prints."""
        return self._output([sys.executable, "-c", code, *words])

    def perflab(self, *words: str) -> str:
        """Run a command there, and return what it prints."""
        return self._output([sys.executable, "-c", "from perflab.cli import main; main()", *words])

    def _output(self, command: list[str]) -> str:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=170, env=self.environment, check=False
        )
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    place = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(SIXTH, place / "sixth", ignore=shutil.ignore_patterns("__pycache__"))
    # Services may run as another user, who must be able to read the path.
    for folder in (place, *place.parents[:2]):
        folder.chmod(0o755)
    variables = {
        "PERFLAB_SYSTEMS": str(place / "sixth"),
        "PERFLAB_RUNS": str(place / "runs"),
        "PERFLAB_FIGURES": str(place / "figures"),
        "COLUMNS": "200",
    }
    return Elsewhere({**os.environ, **variables})


def test_it_is_listed_with_its_system(elsewhere: Elsewhere) -> None:
    (line,) = [line for line in elsewhere.perflab("experiments").splitlines() if "tally_" in line]
    assert line.split()[:2] == ["tally", "tally_delay"]


ROWS = """
import json, perflab
tables = [perflab.claim_ledger('tally').table, perflab.study_check('tally').table]
print(json.dumps([table.to_dict('records') for table in tables]))
"""


def rows_of(place: Elsewhere) -> list[list[dict[str, str]]]:
    """Return the rows of the study's ledger, and those of its check."""
    return list(json.loads(place.python(ROWS)))


def test_its_published_rows_are_in_the_ledger_and_checked_by_its_own_checks(
    elsewhere: Elsewhere,
) -> None:
    rows, (check,) = rows_of(elsewhere)
    assert [(row["kind"], row["outcome"]) for row in rows] == [
        ("result", "not measured"), ("result", "same as another row"),
        ("claim", "not measured"),
    ]  # fmt: skip
    assert {row["command"] for row in rows} >= {"perflab run tally_delay"}
    assert (check["check"], check["finding"]) == ("ten times", "consistent")


MEASURE = """
import json, sys, perflab
run = perflab.run("tally_delay", {"blocks": 2, "seed": 1, "backend": "process"})
trials = run.trials()
saved = perflab.save(run)
print(json.dumps({
    "run_id": run.run_id,
    "system": run.record.system,
    "states": sorted(set(zip(trials["treatment"], trials["state"]))),
    "codes": [reason.code for each in trials["reasons"] for reason in each],
    "warm": bool((trials["taken_bytes_per_s"] > 0).all()),
    "taken": len(run.table("taken", trials["trial_id"])),
    "sizes": sorted({int(each) for each in run.table("taken")["bytes"]}),
    "findings": perflab.findings(run).table.to_dict("records"),
    "summary": list(perflab.summary(run).table.columns),
    "drawn": type(perflab.draw(run, "taken")).__name__,
    "saved": [path.name for path in saved],
    "section": next(path for path in saved if path.suffix == ".md").read_text(),
}))
"""


@pytest.fixture(scope="module")
def measured(elsewhere: Elsewhere) -> dict[str, object]:
    """The results of a run of its experiment, from another process."""
    return dict(json.loads(elsewhere.python(MEASURE).splitlines()[-1]))


def test_its_experiment_runs_to_a_verdict(measured: dict) -> None:
    assert measured["system"] == "tally"
    # On a busy machine the lab may refuse others, too.
    assert ["delay=too_large", "invalid"] in measured["states"]
    assert ["delay=too_large", "valid"] not in measured["states"]
    (finding,) = measured["findings"]
    assert finding["response"] == "bytes taken in per second"
    assert finding["published"] == "10.0"


def test_its_table_response_and_reason_are_in_the_recording(measured: dict) -> None:
    assert measured["codes"].count("tally.too_large") == 2
    assert measured["taken"] == 2 * 3 * 44
    assert measured["sizes"] == [1024]
    assert measured["warm"]
    assert "taken B/s" in measured["summary"]


def test_its_figure_is_drawn_saved_and_in_the_section(measured: dict) -> None:
    assert measured["drawn"] == "LabFigure"
    assert {"taken.svg", "taken.png", "taken.csv", "effect.svg"} <= set(measured["saved"])
    assert "taken.svg" in measured["section"]
    assert "bytes taken in per second" in measured["section"]
    assert "a body of 8192 bytes is above 4096" in measured["section"]


@pytest.mark.slow
def test_its_ledger_has_the_verdict_of_the_run(elsewhere: Elsewhere, measured: dict) -> None:
    (result, _, claim), _ = rows_of(elsewhere)
    assert result["run"] == claim["run"] == measured["run_id"]
    assert result["outcome"] == claim["outcome"] != "not measured"
    # A disturbance of the machine may cost a block.
    assert 1 <= int(result["n"]) <= 2


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.parametrize("backend_name", ["docker"], indirect=True, scope="module")
def test_its_stack_stays_up_and_answers(elsewhere: Elsewhere, backend_name: str) -> None:
    try:
        output = elsewhere.perflab("stack", "up", "tally", "--backend", backend_name)
        assert "tally: http://127.0.0.1:" in output
        assert "POST any bytes to /" in output
        address = re.search(r"http://127\.0\.0\.1:\d+", output)
        assert address
        with urllib.request.urlopen(f"{address[0]}/proof", timeout=10) as answer:
            proof = json.load(answer)["sha256"]
    finally:
        elsewhere.perflab("stack", "down")
    assert proof != hashlib.sha256(b"").hexdigest(), "its secret is empty"
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address[0], timeout=10)
