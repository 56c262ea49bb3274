"""The forest as C++, compiled with the system's compiler where there is one.

Its trees become nested conditions. A feature is a float and a threshold a double, as in
scikit-learn, and probabilities are added in the order of the trees: what comes out is the same to
the last bit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE, LIBRARY, FACTS = "forest.cpp", "forest.so", "build.json"
COMPILERS = ("c++", "g++", "clang++")
# As needed: nothing of the C++ library is, and an image without a compiler may not have it.
FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wl,--as-needed")
TIMEOUT_S = 300.0
LAST_LINES = 8
LEAF = -1
HEAD = """\
// Made from the trained model by compiling.py. Not to be edited.
namespace {
"""
TAIL = """\
}  // namespace

extern "C" void predict(const float *x, double *probabilities) {
  double sum[CLASSES] = {};
CALLS
  for (int i = 0; i < CLASSES; ++i) probabilities[i] = sum[i] / TREES;
}
"""


def compiler() -> str:
    """Return the path of the C++ compiler, ``CXX`` first; empty where there is none."""
    named = (os.environ.get("CXX", ""), *COMPILERS)
    return next((path for name in named if name and (path := shutil.which(name))), "")


def build(folder: Path, source: str) -> None:
    """Write forest.cpp and build.json into a folder, and forest.so where it can be compiled.

    build.json holds compiler, flags and compile_s, or ``trouble``: why there is no library. That is
    no error here: the other runtimes need none.
    """
    (folder / SOURCE).write_text(source)
    tool = compiler()
    without = f"there was no C++ compiler ({', '.join(COMPILERS)}) when the service was prepared"
    facts = _compiled(tool, folder) if tool else {"trouble": without}
    (folder / FACTS).write_text(json.dumps(facts) + "\n")


def _compiled(tool: str, folder: Path) -> dict[str, object]:
    command = [tool, *FLAGS, "-o", str(folder / LIBRARY), str(folder / SOURCE)]
    began = time.monotonic()
    try:
        done = _run(command)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"trouble": f"'{tool}' could not compile the model: {error}"}
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-LAST_LINES:])
        return {"trouble": f"'{tool}' could not compile the model:\n{last}"}
    taken_s = round(time.monotonic() - began, 3)
    version = (_run([tool, "--version"]).stdout.splitlines() or [tool])[0]
    return {"compiler": version, "flags": " ".join(FLAGS), "compile_s": taken_s}


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
    )


def facts(folder: Path) -> dict[str, object]:
    """Return what build.json holds; empty where the service was prepared without."""
    path = folder / FACTS
    return dict(json.loads(path.read_text())) if path.exists() else {}


def forest_source(model: Any) -> str:
    """Return the C++ of a fitted forest: ``predict`` fills the probabilities of all classes."""
    trees = [estimator.tree_ for estimator in model.estimators_]
    functions = [_function(number, tree) for number, tree in enumerate(trees)]
    calls = "\n".join(f"  tree_{number}(x, sum);" for number in range(len(trees)))
    tail = TAIL.replace("CLASSES", str(model.n_classes_)).replace("TREES", f"{len(trees)}.0")
    return "\n".join([HEAD, *functions, tail.replace("CALLS", calls)])


def _function(number: int, tree: Any) -> str:
    body = "\n".join(_lines(tree, 0, "  "))
    return f"void tree_{number}(const float *x, double *sum) {{\n{body}\n}}\n"


def _lines(tree: Any, node: int, indent: str) -> Iterator[str]:
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    if left == LEAF:
        shares = [float(share) for share in tree.value[node, 0]]
        yield from (
            f"{indent}sum[{place}] += {share.hex()};" for place, share in enumerate(shares) if share
        )
        return
    threshold = float(tree.threshold[node]).hex()
    yield f"{indent}if (x[{int(tree.feature[node])}] <= {threshold}) {{"
    yield from _lines(tree, left, indent + "  ")
    yield f"{indent}}} else {{"
    yield from _lines(tree, right, indent + "  ")
    yield f"{indent}}}"
