"""Services are compiled once per content and compiler, whole or not at all, with a record."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from perflab.errors import BackendUnavailable, ServiceFailed
from perflab.stacks import compiler
from perflab.stacks.builds import content_hash, files_of
from perflab.stacks.commands import Work
from perflab.stacks.docker import images
from perflab.stacks.process_backend import ProcessBackend
from perflab.stacks.spec import ServiceSpec

SOURCE = '#include "word.hpp"\n#include <cstdio>\nint main() { std::puts(WORD); }\n'
FAILING = "int main() { return no_such_thing; }\n"


@pytest.fixture
def specimen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceSpec:
    """Make a service that prints a word from one of its headers."""
    folder = tmp_path / "specimen"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.cpp").write_text(SOURCE)
    (folder / "src" / "word.hpp").write_text('#define WORD "first"\n')
    monkeypatch.setenv("PERFLAB_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("PERFLAB_COMPILED")
    monkeypatch.delenv("CXX", raising=False)
    part = {"sources": ["src/*.cpp"], "output": "specimen", "flags": ["-Wall", "-O1"]}
    return ServiceSpec.model_validate(
        {"name": "specimen", "summary": "", "command": ["{program}"], "health": {},
         "folder": folder, "compile": part}
    )  # fmt: skip


@pytest.fixture
def root(specimen: ServiceSpec) -> Path:  # noqa: ARG001
    return ProcessBackend().compiled


def word_of(specimen: ServiceSpec, root: Path, lines: list[str] | None = None) -> str:
    """Compile the service unless that is done, and return its output."""
    tell = (lines if lines is not None else []).append
    program = compiler.ensure(specimen, root, Work(tell))
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip()


def programs(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir())


def test_a_service_is_compiled_once_and_again_when_a_source_a_header_or_a_flag_changes(
    specimen: ServiceSpec, root: Path
) -> None:
    lines: list[str] = []
    assert [word_of(specimen, root, lines) for _ in range(2)] == ["first", "first"]
    assert lines == ["compiling specimen (once)"]
    (specimen.folder / "README.md").write_text("nothing that is compiled")
    (specimen.folder / "src" / "word.hpp").write_text('#define WORD "second"\n')
    assert word_of(specimen, root, lines) == "second"
    assert specimen.compile is not None
    part = specimen.compile.model_copy(update={"flags": ("-O2",)})
    assert word_of(specimen.model_copy(update={"compile": part}), root, lines) == "second"
    assert len(lines) == len(programs(root)) == 3


def test_another_compiler_makes_another_program_and_is_recorded_with_its_flags(
    specimen: ServiceSpec, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = compiler.program(specimen, root)
    other = tmp_path / "other"
    other.write_text('#!/bin/sh\n[ "$2" = --version ] && echo other 1.0 || exec c++ "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("CXX", f"{other} -DMORE")
    assert compiler.program(specimen, root) != first
    assert word_of(specimen, root) == "first"
    versions = {"compiler": "other 1.0", "compiler flags": "-Wall -O1"}
    assert compiler.versions(specimen, root) == versions, "and no Python, which it has not"


def test_a_failing_compiler_shows_its_own_last_lines_and_leaves_nothing(
    specimen: ServiceSpec, root: Path
) -> None:
    (specimen.folder / "src" / "main.cpp").write_text(FAILING)
    with pytest.raises(ServiceFailed, match=r"cannot be compiled: \S+ failed") as failed:
        word_of(specimen, root)
    assert "no_such_thing" in str(failed.value)
    assert programs(root) == []


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("", r"^no C\+\+ compiler was found .*apt-get install g\+\+"),
        ("no-such-compiler -O9", "CXX=no-such-compiler -O9 is no C\\+\\+ compiler"),
    ],
)
def test_without_a_working_compiler_the_error_names_the_ways_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chosen: str, message: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", chosen)
    monkeypatch.setattr(compiler, "WHEEL", "no_such_package")
    with pytest.raises(BackendUnavailable, match=message):
        compiler.find_compiler()


def test_an_image_is_compiled_by_the_same_command(specimen: ServiceSpec, tmp_path: Path) -> None:
    script = tmp_path / "compile.sh"
    script.write_text(compiler.script(specimen))
    output = tmp_path / "out it is"
    subprocess.run(["sh", script, output], cwd=specimen.folder, check=True)
    assert subprocess.run([output], capture_output=True, text=True).stdout == "first\n"
    note = (tmp_path / "out it is.compiler").read_text()
    assert compiler.described(specimen, note)["compiler"].startswith(("c++", "g++", "clang"))


def test_what_dockerignore_leaves_out_is_no_part_of_a_users_image(tmp_path: Path) -> None:
    for name in ("Dockerfile", "app.py", ".env", ".git/config", "data/large.bin", "data/keep.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / ".dockerignore").write_text("# secrets\n.env\n.git\n\ndata/*\n!data/keep.txt\n")
    kept = [str(path.relative_to(tmp_path)) for path in files_of(tmp_path)]
    assert {"Dockerfile", "app.py", "data/keep.txt"} <= {*kept}
    assert {*kept} <= {"Dockerfile", "app.py", "data/keep.txt", ".dockerignore"}
    before = content_hash(tmp_path)
    (tmp_path / ".env").write_text("changed")
    assert content_hash(tmp_path) == before


@pytest.mark.promise
def test_an_image_has_the_links_and_modes_of_its_folder_and_is_made_anew_with_them(
    specimen: ServiceSpec,
) -> None:
    folder = specimen.folder
    start, storage = folder / "start.sh", folder / "storage"
    start.write_text("exec python app.py")
    (folder / "sources").symlink_to("src")
    storage.symlink_to("/no/such/place")
    (folder / "logs").mkdir()
    with tarfile.open(fileobj=images._context(specimen)) as archive:
        entries = {entry.name: entry for entry in archive}
    assert entries["sources"].linkname == "src"
    assert entries["storage"].linkname == "/no/such/place"
    assert entries["logs"].isdir()
    hashes = [content_hash(folder)]
    start.chmod(0o755)
    hashes.append(content_hash(folder))
    storage.unlink()
    storage.symlink_to("/no/other/place")
    hashes.append(content_hash(folder))
    storage.unlink()
    assert len({*hashes, content_hash(folder)}) == 4
