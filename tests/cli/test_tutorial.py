"""The commands of the tutorials, executed in an empty folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.paths import project_root

DOCS = project_root() / "docs"
EXPERIMENT = (DOCS / "how-to" / "own-experiment.md").read_text()
SERVICE = (DOCS / "tutorial" / "own-service.md").read_text()
NOTEBOOK = (DOCS / "tutorial" / "study-notebook.md").read_text()
TIMEOUT_S = 800
# What makes a tutorial short enough for a test.
SHORTER = {
    # Two blocks come to a verdict as well, if to an undecided one.
    "blocks=6": "blocks=2",
    # Beside other tests slices may begin too late to count.
    "perflab duel ": "perflab duel --blocks 7 --duration 0.5 --warmup 0.2 --design trials ",
}

pytestmark = pytest.mark.timeout(TIMEOUT_S + 60)


def blocks(language: str, text: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def executed(here: Path, text: str) -> str:
    """Execute all commands of a tutorial beside its files; return what they print."""
    for name, language in (("app.py", "python"), ("service.toml", "toml")):
        for content in blocks(language, text):
            (here / name).write_text(content)
    script = "\n".join(blocks("sh", text))
    for words, fewer in SHORTER.items():
        script = script.replace(words, fewer)
    extra = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "200",
        **{f"GIT_{role}_{what}": "tutorial@localhost"
           for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }  # fmt: skip
    child = subprocess.Popen(
        ["bash", "-euc", script], cwd=here, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True, env={**os.environ, **extra},
    )  # fmt: skip
    try:
        output, _ = child.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
        pytest.fail(f"not done in {TIMEOUT_S} s:\n{output}")
    assert child.returncode == 0, output
    return " ".join(output.split())


@pytest.mark.slow
def test_an_experiment_and_then_ones_own_service_come_to_a_verdict_and_a_figure(
    here: Path,
) -> None:
    output = executed(here, EXPERIMENT)
    assert "with delay_ms 4.0 answers take longer than with 2.0" in output
    assert "2 passed" in output
    assert re.search(r"valid trials +[012] of 2", (here / "done.ipynb").read_text())
    assert len(list((here / "figures").glob("*checkout_speed*/effect.svg"))) >= 2


@pytest.mark.slow
def test_two_commits_of_a_service_with_a_database_come_to_a_gate_and_a_page(
    here: Path,
) -> None:
    output = executed(here, SERVICE)
    assert "db = postgres (requirements.txt: psycopg)" in output
    assert "a duel of its service can begin" in output
    # A busy machine may leave it open; that a gate fails with status 3 has tests of its own.
    told = re.search(r"gate: (FAILED|not decided) list:mean>1.2", output)
    assert told
    assert ("status 3" in output) == (told[1] == "FAILED")
    assert len(list((here / "perflab-runs").glob("*custom_service*/run.json"))) == 1
    assert "perflab:begin custom_service" in (here / "design" / "custom_service.md").read_text()
    assert "perflab-runs/" in (here / ".gitignore").read_text()
    tracked = subprocess.run(
        ["git", "status", "--porcelain"], cwd=here, capture_output=True, text=True, check=True
    )
    assert "perflab-runs" not in tracked.stdout


@pytest.mark.slow
def test_the_notebook_of_a_study_is_copied_and_its_claims_are_told(here: Path) -> None:
    output = executed(here, NOTEBOOK)
    assert (here / "sync_vs_async.ipynb").is_file()
    assert "reference run" in output
