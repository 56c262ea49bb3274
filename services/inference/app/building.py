"""Compiling the forest's C++ with the system's compiler, where there is one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

SOURCE, LIBRARY, FACTS = "forest.cpp", "forest.so", "build.json"
COMPILERS = ("c++", "g++", "clang++")
# As needed: nothing of the C++ library is, and an image without a compiler may not have it.
FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wl,--as-needed")
TIMEOUT_S = 300.0
LAST_LINES = 8


def compiler() -> str:
    """Return the path of the C++ compiler, ``CXX`` first; empty where there is none."""
    named = (os.environ.get("CXX", ""), *COMPILERS)
    return next((found for name in named if name and (found := shutil.which(name))), "")


def build(folder: Path, source: str) -> None:
    """Write forest.cpp and build.json into a folder, and forest.so where it can be compiled.

    build.json holds compiler, flags and compile_s, or ``trouble``: why there is no library. That is
    no error here: the other runtimes need none.
    """
    (folder / SOURCE).write_text(source)
    tool = compiler()
    facts = _compiled(tool, folder) if tool else {"trouble": _without()}
    (folder / FACTS).write_text(json.dumps(facts) + "\n")


def _compiled(tool: str, folder: Path) -> dict[str, object]:
    command = [tool, *FLAGS, "-o", str(folder / LIBRARY), str(folder / SOURCE)]
    began = time.monotonic()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"trouble": f"'{tool}' could not compile the model: {error}"}
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-LAST_LINES:])
        return {"trouble": f"'{tool}' could not compile the model:\n{last}"}
    taken_s = round(time.monotonic() - began, 3)
    return {"compiler": _version(tool), "flags": " ".join(FLAGS), "compile_s": taken_s}


def _version(tool: str) -> str:
    told = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False)
    return (told.stdout.splitlines() or [tool])[0]


def _without() -> str:
    return f"there was no C++ compiler ({', '.join(COMPILERS)}) when the service was prepared"


def facts(folder: Path) -> dict[str, object]:
    """Return what build.json holds; empty where the service was prepared without."""
    path = folder / FACTS
    return dict(json.loads(path.read_text())) if path.exists() else {}
