"""A service and its database, as ``perflab.toml`` describes them, compared with where it began."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.recordings import Run
from perflab.stacks import cleanup
from tests.support import shop
from tests.support.typing_in import perflab
from tests.systems.custom.test_variants import checked, git, problems, two_revisions

VARIANTS = ["a=command:sleep {port}", "b=command:sleep {port}"]
PROJECT = """
[service]
command = "{python} app.py serve {{port}}"
prepare = "test -d .git"
setup = "{python} app.py fill 40"
health = "/health"
[service.needs]
db = "postgres"
[service.env]
DATABASE_URL = "{{db.url}}"
NOTES = "{notes}"
NAME = "shop"
[load]
path = "/items"
users = 2
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout of the shop on a branch, with ``perflab.toml``; the branch adds two rows at once.

    The user's own environment names the database of the team.
    """
    text = Path(shop.__file__).read_text()
    slower = text.replace("rows.add()", "rows.add(); rows.add()")
    folder = two_revisions(tmp_path / "shop", ("app.py", text), ("README", "a shop\n"))
    git(folder, "branch", "-m", "main")
    git(folder, "checkout", "--quiet", "-b", "topic")
    (folder / "app.py").write_text(slower)
    git(folder, "commit", "--quiet", "--all", "-m", "topic")
    described = PROJECT.format(python=sys.executable, notes=tmp_path / "notes")
    (folder / "perflab.toml").write_text(described)
    return folder


def duel(project: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    variables |= {"PERFLAB_RUNS": str(project.parent / "runs")}
    short = ("--blocks", "2", "--duration", "0.5", "--warmup", "0.1")
    return perflab("duel", *short, *words, cwd=project, **variables)


@pytest.mark.slow
@pytest.mark.promise
def test_every_block_begins_with_what_the_set_up_left_and_the_password_is_nowhere(
    project: Path, tmp_path: Path
) -> None:
    theirs = "postgresql://me:hunter2@127.0.0.1:9/team"
    of_job = tmp_path / "job.md"
    of_job.write_text("built\n")
    done = duel(
        project, "--against", "main", "--design", "trials", "--json", "--summary",
        str(tmp_path / "summary.md"), DATABASE_URL=theirs, GITHUB_STEP_SUMMARY=str(of_job),
    )  # fmt: skip
    assert done.returncode in (0, 4), done.stdout + done.stderr
    notes = (tmp_path / "notes").read_text().splitlines()
    assert notes.count("shop filled") == 2, "once a variant"
    found = [line for line in notes if "found" in line]
    assert {line.partition(" at ")[0] for line in found} == {"shop found 40"}, notes
    (password,) = {line.split("perflab:")[1].split("@")[0] for line in found}
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if (path / "run.json").is_file())
    run = Run(folder)
    assert list(run.trials()["state"].unique()) == ["valid"], done.stdout
    # Each request of the old side adds a row, those of the warm-up and of the checks too.
    old = run.trials()[run.trials()["factor_variant"] == "old"].set_index("trial_id")
    for trial, rows in old["store_rows"].items():
        assert 1 <= rows - 40 - len(run.requests(None, [trial])) <= 30
    summary = (tmp_path / "summary.md").read_text()
    assert of_job.read_text() == f"built\n{summary}"
    assert len(summary.splitlines()) <= 25
    printed = json.loads(done.stdout)
    assert summary.startswith(f"### {[*printed['before'], *printed['answers']][0]}\n")
    assert {row["response"] for row in printed["rows"]} >= {"mean_ms", "failure_share"}
    assert (run.trials()["service_cpu_us_per_request"] > 0).all()
    told = done.stdout + done.stderr + json.dumps(run.record.model_dump(mode="json"), default=str)
    assert "hunter2" not in told
    assert password not in told
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "notes"]
    assert [path for path in written if password.encode() in path.read_bytes()] == []
    assert [stack.service for stack in cleanup.everything() if stack.kind == "run"] == []


def test_what_is_needed_and_not_there_is_refused_before_anything_starts() -> None:
    assert "PostgreSQL 18" in problems(variants=VARIANTS, needs=["db=postgres:12"])
    assert "did you mean 'postgres'?" in problems(variants=VARIANTS, needs=["db=postgers"])
    told = problems(variants=VARIANTS, needs=["db=postgres"], env=["URL={bd.url}"])
    assert "'{bd.url}' in '{bd.url}' has no value (did you mean 'db.url'?)" in told
    urls = ["a=url:http://127.0.0.1:8001", "b=url:http://127.0.0.1:8002"]
    assert "url: is none" in problems(variants=urls, needs=["db=postgres"])
    assert "leave fresh_blocks at 1" in problems(
        variants=VARIANTS, needs=["db=postgres"], fresh_blocks=4
    )
    url = "URL=postgresql://{db.user}:{db.password}@{db.host}:{db.port}/{db.name}"
    kept = checked(variants=VARIANTS, needs=["db=postgres"], env=[url], setup="cat {db.port}")
    assert kept.env == (url,)
