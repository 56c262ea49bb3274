"""The set-up script says what is wrong, and does nothing twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from perflab.host import installer
from perflab.paths import project_root

SCRIPT = project_root() / "scripts" / "setup.sh"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing but the script and what it reads, in a path with a space."""
    root = tmp_path / "a checkout"
    (root / "scripts").mkdir(parents=True)
    shutil.copy(SCRIPT, root / "scripts")
    (root / "perflab" / "host").mkdir(parents=True)
    shutil.copy(installer.__file__, root / "perflab" / "host")
    pins = [f"{name}==1.0 \\\n    --hash=sha256:" + "0" * 64 for name in ("nosuchpackage", "uv")]
    (root / "requirements.lock").write_text("\n".join(pins) + "\n")
    (root / "pyproject.toml").write_text("[project]\nname='x'\nversion='0'\n")
    return root


def setup(root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "scripts/setup.sh"], cwd=root, capture_output=True, text=True, timeout=120,
        env={**os.environ, **environment},
    )  # fmt: skip


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def test_a_too_old_python_is_named_with_the_way_out(checkout: Path, tmp_path: Path) -> None:
    old = program(tmp_path / "bin", "python3", "exit 1\n")
    done = setup(checkout, PYTHON=str(old))
    assert done.returncode == 1
    assert "not a Python 3.11 or newer" in done.stderr
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "cat", "cksum", "dirname", "df", "awk"):
        (tools / name).symlink_to(shutil.which(name) or name)
    done = setup(checkout, PATH=str(tools), PYTHON="")
    assert "no Python 3.11 or newer found" in done.stderr


def test_a_missing_venv_module_names_the_package(checkout: Path, tmp_path: Path) -> None:
    without = program(
        tmp_path / "bin", "python3",
        f'case "$*" in *ensurepip*) exit 1;; esac\nexec "{sys.executable}" "$@"\n',
    )  # fmt: skip
    done = setup(checkout, PYTHON=str(without))
    assert done.returncode == 1
    assert "python3-venv" in done.stderr


def test_a_full_disk_is_noticed_before_anything_is_made(checkout: Path, tmp_path: Path) -> None:
    program(tmp_path / "bin", "df", "printf 'x\\ny 1 1 12 1 /\\n'\n")
    done = setup(checkout, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert "12 MiB are free" in done.stderr
    assert not (checkout / ".venv").exists()


@pytest.fixture
def with_uv(checkout: Path) -> Path:
    """The checkout with an environment that has pip and uv already: the lab's own."""
    venv = checkout / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    packages = next(venv.glob("lib/python*/site-packages"))
    (packages / "lab.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (venv / "bin" / "uv").symlink_to(installer.uv())
    return checkout


@pytest.mark.parametrize("stage", ["checkout", "with_uv"])
def test_an_unreachable_index_is_one_clear_line_and_leaves_no_stamp(
    stage: str, request: pytest.FixtureRequest
) -> None:
    """pip fetches uv, then uv the rest: both have to say it, and both look where pip is told to."""
    checkout = request.getfixturevalue(stage)
    done = setup(
        checkout, PIP_INDEX_URL="http://127.0.0.1:9/", PIP_RETRIES="0", PIP_FIND_LINKS="",
        UV_HTTP_RETRIES="0", PYTHON=sys.executable,
    )  # fmt: skip
    assert done.returncode == 1
    assert "index cannot be reached" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (checkout / ".venv" / "perflab-setup").exists()


@pytest.mark.parametrize(
    ("pinned", "said"), [("1.0", "installing"), ("2.0", "cannot be installed")]
)
def test_the_compiler_of_the_wheel_is_installed_only_where_no_other_is(
    with_uv: Path, tmp_path: Path, pinned: str, said: str
) -> None:
    """What cannot be installed is said, and stops nothing: only compiled services need it."""
    asked = tmp_path / "asked"
    failing = int(pinned != "1.0")
    words = f'echo "$@" >> "{asked}"; case "$*" in *compiler.lock*) exit {failing};; esac'
    (with_uv / "perflab" / "host" / "installer.py").write_text(
        "import subprocess, sys\n"
        f"sys.exit(subprocess.run(['sh', '-c', {words!r}, 'uv', *sys.argv[1:]]).returncode)\n"
    )
    (with_uv / "compiler.lock").write_text(f"ziglang=={pinned}\n")
    assert setup(with_uv, PYTHON=sys.executable, CXX="sh").returncode == 0
    assert "compiler.lock" not in asked.read_text()
    done = setup(with_uv, PYTHON=sys.executable, CXX="no-such-compiler")
    assert done.returncode == 0
    assert asked.read_text().count("--require-hashes -r compiler.lock") == 1
    assert said in done.stdout
    assert setup(with_uv, PYTHON=sys.executable, CXX="no-such-compiler").stdout == ""


def test_a_finished_environment_is_left_alone_until_the_lock_changes(checkout: Path) -> None:
    venv = checkout / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    stamp = subprocess.run(
        ["sh", "-c", "cat requirements.lock pyproject.toml | cksum; pwd"], cwd=checkout,
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (venv / "perflab-setup").write_text(stamp)
    done = setup(checkout, PYTHON="/nonexistent")
    assert (done.returncode, done.stdout) == (0, "")
    with (checkout / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    assert setup(checkout, PYTHON="/nonexistent").returncode == 1
