"""The C++ compiler of this machine: the user's choice, the system's, else the one in a wheel."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

from perflab.errors import BackendUnavailable

# In this order; a system's own choice first.
SYSTEM = ("c++", "g++", "clang++")
WHEEL = "ziglang"
NONE = (
    "no C++ compiler is here (looked for CXX, c++, g++, clang++ and the package ziglang): install "
    "one (Debian: apt-get install g++) or run 'make setup' with a package index in reach, or "
    "choose the backend 'docker'"
)


@dataclass(frozen=True)
class Compiler:
    """A compiler: the words that call it, and the first line of what it says of its version."""

    words: tuple[str, ...]
    version: str


def find() -> Compiler:
    """Return the compiler to use: ``CXX``, the system's, else ziglang's.

    Raises
    ------
    BackendUnavailable
        There is none, or the one that ``CXX`` names does not run; the message says the way out.
    """
    asked = shlex.split(os.environ.get("CXX", ""))
    if asked:
        version = _version(asked)
        if not version:
            raise BackendUnavailable(
                f"CXX={os.environ['CXX']} does not run as a C++ compiler: name one that does, or "
                "unset CXX"
            )
        return Compiler(tuple(asked), version)
    for words in _candidates():
        version = _version(words)
        if version:
            return Compiler(tuple(words), version)
    raise BackendUnavailable(NONE)


def _candidates() -> list[list[str]]:
    found = [[path] for name in SYSTEM if (path := shutil.which(name))]
    if importlib.util.find_spec(WHEEL):
        found.append([sys.executable, "-m", WHEEL, "c++"])
    return found


def _version(words: list[str]) -> str:
    """Return the first line of what it says of itself, or nothing where it does not run."""
    try:
        done = subprocess.run(
            [*words, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=60, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.splitlines()
    return lines[0].strip() if lines and done.returncode == 0 else ""
