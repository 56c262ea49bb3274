#!/usr/bin/env python3
"""Break every promise of the lab on purpose, and see that a test fails.

``scripts/promises.toml`` holds a change for each promise of the README and of the design, and the
tests that must fail under it. A change is made in a copy of the sources; the checkout is never
touched. Each is tried in a process of its own, in which the copy is imported; what the process
leaves goes with it, also when this script is killed.

    scripts/mutations.py                 # all of them; those that start services too
    scripts/mutations.py --fast          # those that need no service: some minutes
    scripts/mutations.py --only planned  # those whose name holds a text
    scripts/mutations.py --list

The status is 1 where a change goes unnoticed, can no longer be made, or cannot be tried.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import contextlib
import ctypes
import gc
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "scripts" / "promises.toml"
COPIED = ("perflab", "services", "tests", "scripts", "benchmarks", "docs", "pyproject.toml")
# Imported once, and not by each of many processes; nothing of the project is among them.
PRELOADED = (
    "PIL.PngImagePlugin", "aiohttp", "docker", "httptools", "httpx", "hypothesis",
    "hypothesis.strategies", "matplotlib.pyplot", "msgpack", "msgspec", "nbformat", "numpy",
    "orjson", "pandas", "psutil", "psycopg2", "pyarrow.parquet", "pydantic.main",
    "pydantic.functional_validators", "pydantic.types", "pytest", "pytest_timeout",
    "rich.console", "rich.progress", "rich.table", "scipy.stats", "seaborn", "typer.testing",
    "uvloop", "yaml",
)  # fmt: skip
AS_IT_IS = "(nothing is changed)"
CAUGHT, SURVIVED = "caught", "SURVIVED"
FAST_S, SLOW_S = 120.0, 900.0
PR_SET_PDEATHSIG = 1
# What lives as long as this process.
_kept_open: list[Any] = []


class DoesNotApply(Exception):
    """A change cannot be made: the code is no longer what the table says."""


@dataclass(frozen=True)
class Promise:
    """A promise, how it is broken, and who must notice.

    ``where`` is ``path/of/module.py`` or ``path/of/module.py::Class.method``. There ``old`` must
    stand once, however its lines are broken; ``new`` takes its place.
    """

    name: str
    promise: str
    where: str
    old: str
    new: str
    tests: tuple[str, ...]
    slow: bool = False

    @property
    def path(self) -> str:
        """Return the module's path."""
        return self.where.partition("::")[0]

    @property
    def within_s(self) -> float:
        """Return how long its tests may take; where nothing is broken they are those of many."""
        return SLOW_S if self.slow or not self.where else FAST_S


@dataclass(frozen=True)
class Outcome:
    """What became of a change, which test noticed it, how long that took and how much CPU time."""

    promise: Promise
    what: str
    by: str
    seconds: float = 0.0
    cpu_s: float = 0.0

    @property
    def good(self) -> bool:
        """Whether all is as it should be."""
        return self.what == CAUGHT


def promises() -> list[Promise]:
    """Read the table; a name that stands twice, or a word that it does not know, is an error."""
    rows = tomllib.loads(TABLE.read_text())["promise"]
    found = [Promise(**{**row, "tests": tuple(row["tests"])}) for row in rows]
    names = [each.name for each in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise SystemExit(f"{TABLE.name}: more than one promise is named {', '.join(sorted(twice))}")
    return found


def changed(source: str, promise: Promise) -> str:
    """Return a module's source with the promise broken.

    Raises
    ------
    DoesNotApply
        The place is gone, what is to be changed stands there not once, or the result is no Python.
    """
    lines = source.splitlines(keepends=True)
    first, last = _lines(source, promise)
    part = "".join(lines[first:last])
    pattern = re.compile(r"\s+".join(map(re.escape, promise.old.split())))
    number = len(pattern.findall(part))
    if number != 1:
        raise DoesNotApply(f"{promise.where} holds this {number} times: {promise.old.strip()}")
    broken = pattern.sub(lambda _: promise.new.strip(), part)
    result = "".join([*lines[:first], broken, *lines[last:]])
    if promise.path.endswith(".py"):
        try:
            ast.parse(result)
        except SyntaxError as error:
            raise DoesNotApply(f"{promise.where}: the change gives no Python: {error}") from None
    return result


def _lines(source: str, promise: Promise) -> tuple[int, int]:
    """Return the lines of the place: from one (counted from 0) up to another."""
    name = promise.where.partition("::")[2]
    if not name:
        return 0, len(source.splitlines())
    body: Sequence[ast.stmt] = ast.parse(source).body
    node: Any = None
    for step in name.split("."):
        node = next((each for each in body if getattr(each, "name", "") == step), None)
        if node is None:
            raise DoesNotApply(f"{promise.path} has no {name}{_elsewhere(name)}")
        body = node.body
    return node.lineno - 1, node.end_lineno


def _elsewhere(name: str) -> str:
    """Return where a definition of that name is now, as a hint."""
    last = re.compile(rf"^\s*(?:async )?(?:def|class) {re.escape(name.split('.')[-1])}\b", re.M)
    found = [
        str(path.relative_to(ROOT))
        for path in ROOT.glob("perflab/**/*.py")
        if last.search(path.read_text())
    ]
    return f"; there is one in {', '.join(found)}" if found else ""


def broken_source(promise: Promise) -> str:
    """Return the broken source of a promise's module, from the checkout."""
    try:
        source = (ROOT / promise.path).read_text()
    except OSError:
        raise DoesNotApply(f"there is no {promise.path}") from None
    return changed(source, promise)


def copy_of_sources(model: Path = ROOT, copy: Callable[..., Any] = shutil.copy2) -> Path:
    """Return a folder in which sources may be replaced; what is only read is linked.

    A small process removes it when this one is gone, however it went. Of a first copy others are
    made of hard links: a thousand files copied take as long as most tests.
    """
    folder = Path(tempfile.mkdtemp(prefix="perflab-mutation-"))
    remover = ["sh", "-c", 'cat; rm -rf -- "$0"', str(folder)]
    _kept_open.append(subprocess.Popen(remover, stdin=subprocess.PIPE, start_new_session=True))
    for path in ROOT.iterdir():
        own = model / path.name
        if path.name not in COPIED:
            if not path.name.startswith("."):
                (folder / path.name).symlink_to(path)
        elif path.is_dir():
            shutil.copytree(own, folder / path.name, symlinks=True, copy_function=copy)
        else:
            copy(own, folder / path.name)
    return folder


def try_out(model: Path, path: str, source: str, tests: Sequence[str], said: Any) -> None:
    """Run tests on a copy in which one module has another source; ``said`` gets their outcome.

    This is what the process of its own does.
    """
    _end_in_order()
    # What was imported for all need not be looked through for garbage by each.
    gc.freeze()
    folder = copy_of_sources(model, os.link)
    if path:
        # The file itself is that of the other copies, too.
        (folder / path).unlink()
        (folder / path).write_text(source)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    os.environ |= {"PYTHONPATH": str(folder), "HYPOTHESIS_PROFILE": "mutations"}
    log = folder / "output.txt"
    with _into(log):
        code = _run_tests(tests)
    said.send((code, log.read_text(errors="replace"), time.process_time()))


def _end_in_order() -> None:
    """Let tests clean up when this process is told to end, or its parent is gone."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


@contextlib.contextmanager
def _into(log: Path) -> Iterator[None]:
    """Send what this process and its children write into a file."""
    with log.open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        yield
        sys.stdout.flush()


def _run_tests(tests: Sequence[str]) -> int:
    import hypothesis
    import pytest

    # The first example that fails is enough: none has to be made smaller, or kept.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "mutations", derandomize=True, deadline=None, database=None, phases=phases
    )
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    plugins = ["-p", "no:cacheprovider", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin"]
    return int(pytest.main(["-x", "-q", "--no-header", *plugins, *tests]))


class Trier:
    """Tries changes out, each in a process made from one that has imported what takes long."""

    def __init__(self) -> None:
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ[name] = "1"
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(PRELOADED))
        self._model = copy_of_sources()
        compileall.compile_dir(self._model / "perflab", quiet=1)

    def outcome(self, promise: Promise) -> Outcome:
        """Break a promise; say who noticed."""
        began = time.monotonic()
        try:
            source = broken_source(promise) if promise.where else ""
        except DoesNotApply as error:
            return Outcome(promise, "DOES NOT APPLY ANY MORE", str(error))
        code, text, cpu_s = self._tried(promise, source)
        what, by = _judged(code, text, bool(promise.where))
        return Outcome(promise, what, by, time.monotonic() - began, cpu_s)

    def _tried(self, promise: Promise, source: str) -> tuple[int, str, float]:
        mine, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=try_out, args=(self._model, promise.path, source, promise.tests, theirs)
        )
        process.start()
        theirs.close()
        try:
            if mine.poll(promise.within_s):
                return tuple(mine.recv())
            return -1, f"no end within {promise.within_s:g} s", 0.0
        except EOFError:
            return -1, "its process ended before its tests", 0.0
        finally:
            _end(process)


def _end(process: Any) -> None:
    """Wait for a process, and end it where it does not end by itself."""
    process.join(10)
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.is_alive():
            os.kill(process.pid, number)
            process.join(20)


def _judged(code: int, text: str, broken: bool) -> tuple[str, str]:
    """Return what an exit status of pytest says, and the test it is about."""
    lines = text.splitlines()
    failed = next((line for line in lines if line.startswith("FAILED ")), "")
    test = failed.removeprefix("FAILED ").partition(" - ")[0]
    if code == 1 and failed:
        return (CAUGHT, test) if broken else ("FAILS AS IT IS", test)
    if code == 0:
        return (SURVIVED, "no test failed") if broken else (CAUGHT, "all tests pass")
    told = next((line for line in reversed(lines) if line.startswith(("E ", "ERROR"))), text[-100:])
    return "CANNOT BE TRIED", f"({code}) {told.strip()}"


def unbroken(outcomes: Sequence[Outcome], parts: int = 2) -> list[Promise]:
    """Return what remains to be shown: that the tests which noticed pass when nothing is broken."""
    found = []
    for slow in (False, True):
        caught = [each for each in outcomes if each.good and each.promise.slow == slow]
        # All parameters of a test: their names may hold what a command line cannot say.
        tests = sorted({each.by.partition("[")[0] for each in caught})
        some = [tuple(tests[part::parts]) for part in range(parts)]
        found += [Promise(AS_IT_IS, AS_IT_IS, "", "", "", each, slow) for each in some if each]
    return found


def tried(trier: Trier, chosen: Sequence[Promise], processes: int) -> Iterator[Outcome]:
    """Yield the outcome of each, in order; slow ones want the machine to themselves."""
    fast = [each for each in chosen if not each.slow]
    with ThreadPoolExecutor(processes) as pool:
        yield from pool.map(trier.outcome, fast)
    yield from map(trier.outcome, [each for each in chosen if each.slow])


def shown(outcome: Outcome) -> str:
    """Return a row of the table."""
    promise = outcome.promise
    by = outcome.by.partition("::")[2] or outcome.by
    return (
        f"{promise.name:<40.40} {promise.where.removeprefix('perflab/'):<52.52} "
        f"{outcome.seconds:5.1f} s  {outcome.what}: {by}"
    )


def main() -> int:
    """Try what was asked for, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fast", action="store_true", help="leave out what starts services")
    parser.add_argument("--only", metavar="NAME", help="only those whose name holds this")
    parser.add_argument("--list", action="store_true", help="show the promises and try nothing")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="at a time (2)")
    asked = parser.parse_args()
    chosen = [each for each in promises() if not (asked.fast and each.slow)]
    chosen = [each for each in chosen if not asked.only or asked.only in each.name]
    if not chosen:
        parser.error("no promise is named so; --list shows them")
    if asked.list:
        for each in chosen:
            print(f"{each.name}{' (slow)' if each.slow else ''}: {each.promise}")
        return 0
    return report(chosen, asked.processes)


def report(chosen: Sequence[Promise], processes: int) -> int:
    """Try the chosen ones, print the table, and return the status."""
    trier, began, outcomes = Trier(), time.monotonic(), []
    for outcome in tried(trier, chosen, processes):
        outcomes.append(outcome)
        print(shown(outcome), flush=True)
    for outcome in tried(trier, unbroken(outcomes), processes):
        outcomes.append(outcome)
        print(shown(outcome), flush=True)
    bad = [each for each in outcomes if not each.good]
    for each in bad:
        print(f"\n{each.what}: {each.promise.name}: {each.promise.promise}\n  {each.by}")
    took_s, cpu_s = time.monotonic() - began, sum(each.cpu_s for each in outcomes)
    print(f"{len(chosen)} promises broken in {took_s:.0f} s ({cpu_s:.0f} s of CPU); {len(bad)} bad")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
