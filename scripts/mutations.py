#!/usr/bin/env python3
"""Break the promises of the lab on purpose, and see that a test fails.

``scripts/promises.toml`` holds for each promise a text of the package that keeps it, what is put in
its place, and the tests that must fail then. The change is made in a copy of the sources; the
checkout stays as it is.

    scripts/mutations.py                 # all promises
    scripts/mutations.py --fast          # those whose tests start no services
    scripts/mutations.py --only planned  # those whose sentence holds a text

The status is 1 where a change goes unnoticed or can no longer be made, or where a test fails though
nothing is changed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "scripts" / "promises.toml"
COPIED = ("perflab", "services", "tests", "docs", "pyproject.toml")
CAUGHT = "caught"
PLUGINS = ("-p", "no:cacheprovider", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin")
LIMIT_S = 600


class DoesNotApply(Exception):
    """A promise names a text or a test that is not there, or is there more than once."""


@dataclass(frozen=True)
class Promise:
    """A promise, the text that keeps it, what breaks it, and the tests that must notice.

    ``find`` stands once in the package, however its lines are broken; ``tests`` are names of
    functions.
    """

    promise: str
    find: str
    put: str
    tests: tuple[str, ...]
    slow: bool = False

    def broken(self) -> tuple[str, str]:
        """Return the module that keeps the promise, and its source with the promise broken."""
        pattern = re.compile(r"\s+".join(map(re.escape, self.find.split())))
        sources = {path: path.read_text() for path in sorted(ROOT.glob("perflab/**/*.py"))}
        found = [path for path, text in sources.items() for _ in pattern.findall(text)]
        if len(found) != 1:
            places = ", ".join(str(path.relative_to(ROOT)) for path in found) or "no module"
            raise DoesNotApply(
                f"{self.find.strip()!r} must stand once in perflab/, not in {places}"
            )
        path = str(found[0].relative_to(ROOT))
        return path, pattern.sub(lambda _: self.put.strip(), sources[found[0]])

    def node_ids(self) -> list[str]:
        """Return the tests as pytest is told them."""
        return [node for name in self.tests for node in _definitions(name)]


def _definitions(name: str) -> list[str]:
    files = sorted(ROOT.glob("tests/**/test_*.py"))
    found = [str(path.relative_to(ROOT)) for path in files if f"def {name}(" in path.read_text()]
    if not found:
        raise DoesNotApply(f"there is no test {name}")
    return [f"{path}::{name}" for path in found]


def promises() -> list[Promise]:
    """Read the table."""
    rows = tomllib.loads(TABLE.read_text())["promises"]
    return [Promise(**{**row, "tests": tuple(row["tests"])}) for row in rows]


@contextmanager
def copy_of_sources() -> Iterator[Path]:
    """Give a folder in which sources may be changed; what tests only read is linked."""
    with tempfile.TemporaryDirectory(prefix="perflab-mutation-") as name:
        folder = Path(name)
        for path in ROOT.iterdir():
            if path.name not in COPIED:
                if not path.name.startswith("."):
                    (folder / path.name).symlink_to(path)
            elif path.is_dir():
                shutil.copytree(path, folder / path.name, symlinks=True)
            else:
                shutil.copy(path, folder)
        yield folder


def run_tests(folder: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests in a copy of the sources; return pytest's exit status and what it said last."""
    names = {"PYTHONPATH": str(folder), "HYPOTHESIS_PROFILE": "ci", "OMP_NUM_THREADS": "1"}
    # Imports are most of the time: without other plugins, and compiled once, they take a third.
    names |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-m", "pytest", "-x", "--no-header", *PLUGINS]
    try:
        done = subprocess.run(
            [*command, *tests],
            cwd=folder,
            env=os.environ | names,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return -1, f"no end within {LIMIT_S} s"
    lines = done.stdout.splitlines() or [done.stderr]
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return done.returncode, (failed or lines)[-1]


def outcome(promise: Promise, folder: Path) -> tuple[str, str]:
    """Break a promise in a copy; return what became of it, and who noticed."""
    try:
        path, source = promise.broken()
        tests = promise.node_ids()
    except DoesNotApply as error:
        return "DOES NOT APPLY", str(error)
    try:
        (folder / path).write_text(source)
        status, said = run_tests(folder, tests)
    finally:
        shutil.copy(ROOT / path, folder / path)
    if status == 1:
        return CAUGHT, said.removeprefix("FAILED ").partition(" - ")[0]
    return ("SURVIVED" if status == 0 else f"CANNOT BE TRIED ({status})"), f"{path}: {said}"


def try_all(chosen: Sequence[Promise], copies: Sequence[Path]) -> bool:
    """Break each promise, as many at a time as there are copies; say whether all were noticed."""
    free: SimpleQueue[Path] = SimpleQueue()
    for folder in copies:
        free.put(folder)

    def tried(promise: Promise) -> bool:
        folder, began = free.get(), time.monotonic()
        what, by = outcome(promise, folder)
        free.put(folder)
        took_s = time.monotonic() - began
        print(f"{what} in {took_s:.0f} s: {promise.promise}\n    {by}", flush=True)
        return what == CAUGHT

    with ThreadPoolExecutor(len(copies)) as pool:
        return all(list(pool.map(tried, chosen)))


def main() -> int:
    """See that the tests pass as it is, then try what was asked for."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fast", action="store_true", help="leave out what starts services")
    parser.add_argument("--only", metavar="TEXT", default="", help="text in their sentence")
    asked = parser.parse_args()
    chosen = [each for each in promises() if asked.only in each.promise]
    fast = [each for each in chosen if not each.slow]
    slow = [each for each in chosen if each.slow and not asked.fast]
    if not fast + slow:
        parser.error("no promise has that text in its sentence")
    tests = sorted({node for each in fast + slow for node in each.node_ids()})
    with copy_of_sources() as one, copy_of_sources() as other:
        status, said = run_tests(one, tests)
        print(f"nothing changed: {said}", flush=True)
        good = status == 0
        # What starts services wants the machine to itself.
        good &= try_all(fast, [one, other])
        good &= try_all(slow, [one])
    print(f"{len(fast + slow)} promises broken; {'all' if good else 'NOT all'} is as it should be")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
