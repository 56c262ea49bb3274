"""docs/own-experiment.md, executed as it is written, in an empty folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.errors import BackendUnavailable
from perflab.paths import project_root
from perflab.stacks.backend import free_port

TEXT = (project_root() / "docs" / "own-experiment.md").read_text()
PORT = "8123"
PATIENCE_S = 800

pytestmark = pytest.mark.timeout(PATIENCE_S + 60)


def section(title: str) -> str:
    """Return what stands below a heading."""
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def blocks(language: str, text: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty folder with the service of the tutorial, that services may read."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    (app,) = blocks("python", TEXT)
    (tmp_path / "app.py").write_text(app)
    return tmp_path


def executed(title: str, here: Path) -> str:
    """Execute the commands of a section, on a port that is free; return what they print."""
    script = "\n".join(
        ["trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", *blocks("sh", section(title))]
    )
    port = str(free_port())
    own = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PERFLAB_RUNS": str(here / "runs"),
        "PERFLAB_FIGURES": str(here / "figures"),
        "PORT": port,
        "COLUMNS": "200",
    }
    child = subprocess.Popen(
        ["bash", "-euc", script.replace(PORT, port)], cwd=here, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True, env={**os.environ, **own},
    )  # fmt: skip
    try:
        told, _ = child.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        # The service of the tutorial, too, which nobody else would end.
        os.killpg(child.pid, signal.SIGKILL)
        told, _ = child.communicate()
        pytest.fail(f"not done in {PATIENCE_S} s:\n{told}")
    assert child.returncode == 0, told
    return " ".join(told.split())


@pytest.mark.slow
def test_an_address_comes_to_a_verdict_and_a_figure(here: Path) -> None:
    told = executed("From an address", here)
    assert "per_request answers take another time than keep_alive" in told
    assert "2 passed" in told
    (notebook,) = here.glob("done.ipynb")
    assert "of 2 trials valid" in notebook.read_text()
    assert list((here / "figures").glob("*checkout_speed*/effect.svg"))


@pytest.mark.slow
def test_a_command_comes_to_a_verdict_and_a_figure(here: Path) -> None:
    assert "per_request answers take another time" in executed("From a command", here)
    assert list((here / "figures").glob("*cart_speed*/effect.svg"))


@pytest.mark.docker
@pytest.mark.slow
def test_a_dockerfile_comes_to_a_verdict_and_a_figure(here: Path) -> None:
    from perflab.stacks.docker_backend import connect

    try:
        connect()
    except BackendUnavailable:
        if os.environ.get("PERFLAB_REQUIRE_DOCKER") == "1":
            raise
        pytest.skip("no Docker engine answers")
    (dockerfile,) = blocks("dockerfile", TEXT)
    (here / "svc").mkdir()
    (here / "svc" / "Dockerfile").write_text(dockerfile)
    (here / "app.py").rename(here / "svc" / "app.py")
    told = executed("From a Dockerfile", here)
    assert "docker backend" in told or "(search_speed, docker)" in told
    assert list((here / "figures").glob("*search_speed*/effect.svg"))


def test_no_command_of_the_tutorial_is_left_out() -> None:
    titles = re.findall(r"^## (From .*)$", TEXT, re.M)
    assert titles == ["From an address", "From a command", "From a Dockerfile"]
    in_them = sum(len(blocks("sh", section(title))) for title in titles)
    assert in_them == len(blocks("sh", TEXT)) > 0
