"""Each service has its own packages, made once and whole, or an error that says why not."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from perflab.errors import ServiceFailed
from perflab.stacks import builds, environments
from perflab.stacks.commands import Work
from perflab.stacks.environments import Environment
from perflab.stacks.process_backend import ProcessBackend
from perflab.stacks.spec import ServiceSpec
from tests.support.children import child
from tests.support.wheels import only_from, wheel

UNKNOWN = "--hash=sha256:" + "0" * 64
DAY_S = 24 * 3600.0
MAKER = """
import sys, time
from pathlib import Path
from perflab.stacks import builds
def make(folder):
    (folder / "half").touch()
    print(1, flush=True)
    time.sleep(60)
builds.made(Path(sys.argv[1]), make)
"""


@pytest.fixture
def specimen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceSpec:
    """Make a service that pins ``thing`` 1.0, which can be installed without a network."""
    folder = tmp_path / "services" / "specimen"
    folder.mkdir(parents=True)
    pinned = wheel(tmp_path / "wheels", "thing", "1.0")
    (folder / "requirements.txt").write_text(pinned)
    for name, value in only_from(tmp_path / "wheels").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PERFLAB_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("PERFLAB_ENVIRONMENTS")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    return ServiceSpec.model_validate(
        {"name": "specimen", "summary": "", "command": ["x"], "health": {}, "folder": folder}
    )


@pytest.fixture
def root(specimen: ServiceSpec) -> Path:  # noqa: ARG001
    return ProcessBackend().environments


def made(specimen: ServiceSpec, root: Path, lines: list[str] | None = None) -> Environment:
    tell = (lines if lines is not None else []).append
    return environments.ensure(specimen, root, Work(tell))


def test_a_service_runs_on_what_it_pins_and_not_on_what_the_lab_has(
    specimen: ServiceSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "thing.py").write_text("VERSION = '2.0'\n")
    (lab / "thing-2.0.dist-info").mkdir()
    (lab / "thing-2.0.dist-info" / "METADATA").write_text("Name: thing\nVersion: 2.0\n")
    monkeypatch.syspath_prepend(str(lab))
    monkeypatch.setenv("PYTHONPATH", str(lab))
    __import__("thing")
    code = "import thing; open('{artifacts}/v', 'w').write(thing.VERSION)"
    part = specimen.process.model_copy(update={"prepare": ("{python}", "-c", code)})
    prepared = specimen.model_copy(update={"process": part})
    backend = ProcessBackend()
    identity = backend.prepare(prepared)
    assert (backend.artifacts / f"specimen-{identity}" / "v").read_text() == "1.0"
    assert backend.versions(prepared) == {"python": sys.version.split()[0], "thing": "1.0"}


def test_a_folder_of_a_package_without_a_name_has_no_version(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    (environment.packages / "gone-1.0.dist-info").mkdir(parents=True)
    assert environment.versions() == {"python": sys.version.split()[0]}


def test_an_environment_is_made_once_and_again_when_the_pins_change(
    specimen: ServiceSpec, root: Path, tmp_path: Path
) -> None:
    lines: list[str] = []
    first = made(specimen, root, lines)
    assert made(specimen, root, lines) == first
    assert lines == ["making the environment of specimen (once)"]
    (specimen.folder / "requirements.txt").write_text(wheel(tmp_path / "wheels", "thing", "1.1"))
    second = made(specimen, root, lines)
    assert (first.versions()["thing"], second.versions()["thing"]) == ("1.0", "1.1")
    assert len(lines) == 2


def test_a_failure_says_the_way_out_and_leaves_nothing(
    specimen: ServiceSpec, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (specimen.folder / "requirements.txt").write_text(f"nothing==1.0 {UNKNOWN}")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("UV_OFFLINE", "0")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(ServiceFailed, match="its environment cannot be made") as failed:
        made(specimen, root)
    assert "index cannot be reached; check network and proxy" in failed.value.reason
    assert "error: " in str(failed.value)
    assert list(root.iterdir()) == []


def folders(root: Path) -> set[str]:
    return {path.name for path in root.iterdir() if path.is_dir()}


def test_the_folder_of_a_killed_maker_is_never_used_and_is_removed(tmp_path: Path) -> None:
    with child(MAKER, str(tmp_path / "it")):
        builds.made(tmp_path / "other", lambda _: None)
        assert folders(tmp_path) == {"it", "other"}, "its maker is alive"
    builds.made(tmp_path / "third", lambda _: None)
    assert folders(tmp_path) == {"other", "third"}
    with child(MAKER, str(tmp_path / "it")):
        pass
    target = builds.made(tmp_path / "it", lambda folder: (folder / "whole").touch())
    assert [path.name for path in target.iterdir()] == ["whole"]


def test_a_second_process_waits_for_the_first_and_takes_its_folder(tmp_path: Path) -> None:
    target = tmp_path / "it"
    with child(MAKER.replace("sleep(60)", "sleep(1)"), str(target)):
        builds.made(target, lambda _: pytest.fail("it was made twice"))
    assert [path.name for path in target.iterdir()] == ["half"]


def test_a_folder_is_made_in_its_final_place(tmp_path: Path) -> None:
    target = tmp_path / "it"
    builds.made(target, lambda folder: (folder / "place").write_text(str(folder)))
    assert (target / "place").read_text() == str(target)


def test_the_copy_of_a_folder_that_nobody_uses_goes_with_it(tmp_path: Path) -> None:
    def copy(folder: Path, kept: Path) -> None:
        shutil.copytree(folder, kept, dirs_exist_ok=True)

    old = builds.made(tmp_path / "old", lambda folder: (folder / "x").touch(), copy=copy)
    assert (builds.copy_of(old) / "x").exists()
    long_ago = time.time() - 31 * DAY_S
    os.utime(tmp_path / f".old{builds.MARK}", (long_ago, long_ago))
    builds.made(tmp_path / "new", lambda _: None)
    assert folders(tmp_path) == {"new"}


def test_a_folder_that_nobody_has_used_for_a_month_is_removed(tmp_path: Path) -> None:
    for name in ("fresh", "old", "used again"):
        builds.made(tmp_path / name, lambda folder: (folder / "x").touch())
    long_ago = time.time() - 31 * DAY_S
    for name in ("old", "used again"):
        os.utime(tmp_path / f".{name}{builds.MARK}", (long_ago, long_ago))
    builds.made(tmp_path / "used again", lambda _: None)
    builds.made(tmp_path / "new", lambda _: None)
    assert folders(tmp_path) == {"fresh", "new", "used again"}
