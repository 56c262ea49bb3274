"""The wheel by itself, in a folder with nothing else: commands run, and results stay there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.host import installer
from perflab.paths import project_root

INDEX = installer.variables()


def call(*command: str, cwd: Path, **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PERFLAB_")}
    done = subprocess.run(
        command, cwd=cwd, env={**kept, **INDEX, **variables}, text=True,
        capture_output=True, check=False, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def perflab(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the wheel of the tracked files and install it; return the command's path."""
    place = tmp_path_factory.mktemp("wheel")
    tracked = call("git", "ls-files", "-z", cwd=project_root()).split("\0")
    for name in filter(None, tracked):
        source, target = project_root() / name, place / "source" / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    uv = installer.uv()
    call(uv, "build", "--quiet", "--wheel", "--out-dir", str(place), cwd=place / "source")
    shutil.rmtree(place / "source")
    call(uv, "venv", "--quiet", "--python", sys.executable, str(place / "venv"), cwd=place)
    (wheel,) = place.glob("*.whl")
    python = str(place / "venv" / "bin" / "python")
    call(uv, "pip", "install", "--quiet", "--python", python, str(wheel), cwd=place)
    return str(place / "venv" / "bin" / "perflab")


@pytest.mark.slow
def test_an_installed_package_needs_no_checkout(perflab: str, tmp_path: Path) -> None:
    state = {"PERFLAB_STATE": str(tmp_path / "state"), "PERFLAB_LOCK": str(tmp_path / "lock")}
    here = tmp_path / "project"
    here.mkdir()
    shutil.copy(project_root() / "services" / "duel_example" / "server.py", here / "app.py")
    listed = call(perflab, "experiments", cwd=here)
    assert "sync_vs_async" in listed
    assert "left out" not in listed
    assert "reference run" in call(perflab, "claims", "--study", "inference", cwd=here, **state)
    command = "command:python3 app.py --port {port}"
    answer = call(
        perflab, "duel", "--variant", f"old={command}", "--variant", f"new={command}", "--blocks",
        "1", "-d", "0.5", "--warmup", "0.1", "--design", "trials", cwd=here, **state,
    )  # fmt: skip
    assert "trials count" in answer
    measured = call(
        perflab, "run", "serialization", "--backend", "process", "-p", "blocks=1", "-p",
        "codec=json", "-p", "operation=serialize", "-p", "message=published", cwd=here, **state,
    )  # fmt: skip
    assert "serialization" in measured
    runs = sorted(path.name.split("-")[1] for path in (here / "perflab-runs").iterdir())
    assert runs == ["custom_service", "serialization"]
    call(perflab, "new", "experiment", "checkout", cwd=here, **state)
    assert "checkout" in call(perflab, "experiments", cwd=here)
    for words, package, extra in (
        (["lab"], "papermill", "lab"), (["run", "chat_ladder"], "msgpack", "studies"),
    ):  # fmt: skip
        way_out = rf"{package} is not installed: pip install 'perflab\[{extra}\]'"
        with pytest.raises(AssertionError, match=way_out):
            call(perflab, *words, cwd=here, **state)


@pytest.mark.slow
def test_uvx_and_uv_tool_install_run_the_wheel(perflab: str, tmp_path: Path) -> None:
    (wheel,) = Path(perflab).parents[2].glob("*.whl")
    own = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    words = ("--quiet", "--python", sys.executable)
    asked = (installer.uv(), "tool", "run", *words, "--from", str(wheel), "perflab", "--version")
    assert call(*asked, cwd=tmp_path, **own).startswith("perflab ")
    call(installer.uv(), "tool", "install", *words, str(wheel), cwd=tmp_path, **own)
    assert "sync_vs_async" in call(str(tmp_path / "bin" / "perflab"), "experiments", cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("python", ["3.11", "3.14"])
@pytest.mark.parametrize(
    "platform", ["x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin"]
)
def test_every_pinned_package_has_a_wheel_for(python: str, platform: str, tmp_path: Path) -> None:
    call(
        installer.uv(), "pip", "install", "--dry-run", "--no-deps", "--only-binary", ":all:",
        "--target", str(tmp_path), "--python-version", python, "--python-platform", platform,
        "--requirements", str(project_root() / "requirements.lock"), cwd=tmp_path,
    )  # fmt: skip
