"""The commands of docs/own-experiment.md, executed in an empty folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.paths import project_root

TEXT = (project_root() / "docs" / "own-experiment.md").read_text()
TIMEOUT_S = 800

pytestmark = pytest.mark.timeout(TIMEOUT_S + 60)


def section(title: str) -> str:
    """Return the text below a heading."""
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def blocks(language: str, text: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty folder with the service of the tutorial, that services may read."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    for name, language in (("app.py", "python"), ("service.toml", "toml")):
        (text,) = blocks(language, TEXT)
        (tmp_path / name).write_text(text)
    return tmp_path


def executed(here: Path, *titles: str) -> str:
    """Execute the commands of sections; return what they print."""
    script = "\n".join(block for title in titles for block in blocks("sh", section(title)))
    # Two blocks come to a verdict as well, if to an undecided one.
    script = script.replace("blocks=6", "blocks=2")
    extra = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PERFLAB_RUNS": str(here / "runs"),
        "PERFLAB_FIGURES": str(here / "figures"),
        "COLUMNS": "200",
    }
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
def test_the_example_and_then_ones_own_service_come_to_a_verdict_and_a_figure(
    here: Path,
) -> None:
    output = executed(here, "The example", "Your own service")
    assert "with a delay of 4 ms answers take longer than with 2 ms" in output
    assert "2 passed" in output
    assert "of 2 trials valid" in (here / "done.ipynb").read_text()
    assert len(list((here / "figures").glob("*checkout_speed*/effect.svg"))) >= 2


def test_no_command_of_the_tutorial_is_left_out() -> None:
    counts = [len(blocks("sh", section(title))) for title in ("The example", "Your own service")]
    assert sum(counts) == len(blocks("sh", TEXT)) > 0
