"""The complete ``perflab.toml`` of each stack in the guide starts a small shop of that stack."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from perflab.paths import project_root
from perflab.recordings import list_runs
from perflab.stacks import cleanup
from perflab.trials.parameter_file import read_parameters
from tests.support.typing_in import perflab

SHOPS = Path(__file__).parent / "shops"
GUIDE = (project_root() / "docs" / "how-to" / "duel.md").read_text()
FILES = dict(re.findall(r"^```toml\n# (\w+)\n(.*?)^```$", GUIDE, re.M | re.S))
# What must be here to start each of them.
TOOLS = {"fastapi": "python3", "django": "python3", "express": "npm", "go": "go", "java": "javac"}
SHORT = ("--blocks", "1", "--duration", "0.5", "--warmup", "0.2", "--design", "trials")


def test_each_shop_has_a_file_and_each_file_is_read(tmp_path: Path) -> None:
    assert {*FILES} == {*TOOLS} == {path.name for path in SHOPS.iterdir()}
    for name, text in FILES.items():
        (tmp_path / "perflab.toml").write_text(text)
        values, _ = read_parameters(tmp_path / "perflab.toml", name)
        assert values["command"]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TOOLS)
def test_two_commits_of_a_shop_are_compared(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(TOOLS[name]) is None:
        pytest.skip(f"{TOOLS[name]} is not here")
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("PERFLAB_FIGURES", str(tmp_path / "figures"))
    shop = tmp_path / "shop"
    shutil.copytree(SHOPS / name, shop)
    (shop / "perflab.toml").write_text(FILES[name])
    author = ("-c", "user.name=shop", "-c", "user.email=shop@localhost")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "old")):
        subprocess.run(["git", *author, *words], cwd=shop, check=True)
    (shop / "README").write_text("a shop\n")
    for words in (("add", "."), ("commit", "--quiet", "--message", "new")):
        subprocess.run(["git", *author, *words], cwd=shop, check=True)
    done = perflab("duel", "--against", "HEAD~1", *SHORT, "--wait", "300", cwd=shop)
    assert done.returncode in (0, 4), done.stdout + done.stderr
    (run,) = list_runs(tmp_path / "runs")
    trials = run.trials()
    assert (trials["failure_share"] == 0).all(), done.stdout
    assert (trials["service_cpu_us_per_request"] > 0).all()
    assert [stack.service for stack in cleanup.everything() if stack.kind == "run"] == []
