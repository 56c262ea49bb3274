"""Compiles services.

A service is compiled once for its sources, its flags and the compiler, by the command of
``[compile]`` in ``service.toml``; an image's own compiler runs the same command (``script``).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import BackendUnavailable, ServiceFailed, StackError
from perflab.stacks.builds import content_hash, made
from perflab.stacks.commands import NO_WORK, Work
from perflab.stacks.spec import Compile, ServiceSpec

# The lab tries them in this order.
SYSTEM = ("c++", "g++", "clang++")
WHEEL = "ziglang"
NONE = (
    "no C++ compiler was found (CXX, c++, g++, clang++ and the package ziglang): install one "
    "(Debian: apt-get install g++), run 'make setup' where a package index can be reached, or "
    "choose the backend 'docker'"
)
# The file beside the program that holds the version of the image's compiler.
COMPILER_SUFFIX = ".compiler"


@dataclass(frozen=True)
class Compiler:
    """A compiler: the words that call it, and the first line of its version text."""

    words: tuple[str, ...]
    version: str


def ensure(spec: ServiceSpec, root: Path, work: Work = NO_WORK) -> Path:
    """Compile a service's program unless it exists, and return its path.

    Raises BackendUnavailable where there is no compiler, and ServiceFailed, with the compiler's
    last lines, where it fails.
    """
    compiler = find_compiler()
    target = program(spec, root, compiler)

    def make(folder: Path) -> None:
        work.tell(f"compiling {spec.name} (once)")
        _compile(spec, compiler, folder, root, work)

    try:
        return made(target.parent, make) / target.name
    except OSError as error:
        raise ServiceFailed(spec.name, f"it cannot be compiled: {error}") from None


def program(spec: ServiceSpec, root: Path, compiler: Compiler | None = None) -> Path:
    """Return the path of a service's program, which need not exist yet.

    The folder's name holds a hash of all that the program needs.
    """
    compiler = compiler or find_compiler()
    part = _description(spec)
    digest = hashlib.sha256()
    words = [*compiler.words, compiler.version, platform.machine(), *part.words(spec.folder, "")]
    digest.update("\0".join(words).encode())
    for folder in sorted({(spec.folder / file).parent for file in part.files(spec.folder)}):
        digest.update(content_hash(folder).encode())
    return root / f"{spec.name}-{digest.hexdigest()[:12]}" / part.output


def versions(spec: ServiceSpec, root: Path) -> dict[str, str]:
    """Return the compiler and flags that a program was compiled with."""
    return described(spec, _note(program(spec, root)).read_text())


def described(spec: ServiceSpec, compiler: str) -> dict[str, str]:
    """Return compiler and flags by their names in the record."""
    flags = " ".join(_description(spec).flags)
    return {"compiler": compiler.strip(), "compiler flags": flags}


def script(spec: ServiceSpec) -> str:
    """Return a shell script that compiles the service in an image to the path it is called with."""
    output = "$1"
    words = _description(spec).words(spec.folder, output)
    quoted = " ".join(f'"{output}"' if word == output else shlex.quote(word) for word in words)
    version = f'c++ --version | head -n 1 > "{output}{COMPILER_SUFFIX}"'
    return "\n".join(["set -eu", f"c++ {quoted}", version, ""])


def _compile(spec: ServiceSpec, compiler: Compiler, folder: Path, root: Path, work: Work) -> None:
    part = _description(spec)
    output = folder / part.output
    # The folder goes away with what a killed compiler leaves in it.
    scratch = folder / "scratch"
    scratch.mkdir()
    # ziglang compiles its libraries at its first use, and keeps them.
    caches = {name: str(root / "zig") for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    variables = {"TMPDIR": str(scratch), "LC_ALL": "C", **caches}
    command = [*compiler.words, *part.words(spec.folder, str(output))]
    process = work.run(command, f"while {spec.name} was compiled", variables, spec.folder)
    if process.returncode:
        problem = f"it cannot be compiled: {' '.join(compiler.words)} failed"
        raise ServiceFailed(spec.name, problem, process.stdout + process.stderr)
    _note(output).write_text(f"{compiler.version}\n")
    shutil.rmtree(scratch)


def _description(spec: ServiceSpec) -> Compile:
    if spec.compile is None:
        raise StackError(f"service '{spec.name}' has no [compile] in its service.toml")
    return spec.compile


def _note(output: Path) -> Path:
    return output.with_name(f"{output.name}{COMPILER_SUFFIX}")


def find_compiler() -> Compiler:
    """Return the compiler to use: ``CXX``, the system's, else ziglang's.

    Raises BackendUnavailable, with the way out, where none runs.
    """
    choice = shlex.split(os.environ.get("CXX", ""))
    found = [[path] for name in SYSTEM if (path := shutil.which(name))]
    if importlib.util.find_spec(WHEEL):
        found.append([sys.executable, "-m", WHEEL, "c++"])
    for words in [choice] if choice else found:
        if version := _version(words):
            return Compiler(tuple(words), version)
    unusable = f"CXX={shlex.join(choice)} is no C++ compiler that runs: set another or unset CXX"
    raise BackendUnavailable(unusable if choice else NONE)


def _version(words: list[str]) -> str:
    """Return the first line of a compiler's version text; empty where it does not run."""
    try:
        done = subprocess.run(
            [*words, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=60, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.splitlines()
    return lines[0].strip() if lines and done.returncode == 0 else ""
