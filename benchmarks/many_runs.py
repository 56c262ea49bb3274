"""How long does it take to look at 1,000 runs? Complete folders, made by the real writer.

Made once, with planted trials (``tests/synthetic.py``). First with no index, so that every trial is
read and its files compared with their digests; then with it, when every file is looked at and none
opened; then after one more run. For comparison: one run after the other, without an index.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from perflab.across import effects, trials_of
from perflab.recordings import Run, many_index
from tests.synthetic import write_run


def write(root: Path, count: int) -> None:
    """Write as many runs as lack: two treatments, six blocks."""
    for number in range(count):
        if not (root / _name(number)).exists():
            write_run(root, seed=number, run_id=_name(number), requests=100, blocks=6)


def _name(number: int) -> str:
    return f"2026{number // 24 % 12 + 1:02d}01T{number % 24:02d}0000Z-planted-{number:06x}"


def seconds(call: Callable[[], object]) -> float:
    """Return what a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> None:
    """Write the runs, measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="keep the runs there")
    given = parser.parse_args()
    place = nullcontext(given.folder) if given.folder else tempfile.TemporaryDirectory()
    with place as folder:
        root = Path(folder)
        os.environ["PERFLAB_RUNS"] = str(root)
        write(root, given.runs)
        shutil.rmtree(root / many_index.FOLDER_NAME, ignore_errors=True)
        print(f"{'':<28}{'trials_of':>12}{'effects':>12}")
        for name in ("no index", "with the index", "again"):
            _print(name)
        write(root, given.runs + 1)
        _print("after one more run")
        plain = seconds(lambda: [Run(path).trials() for path in sorted(root.glob("2*"))])
        print(f"{'one by one, trials':<28}{plain:>10.2f} s")


def _print(name: str) -> None:
    for_trials, for_effects = seconds(trials_of), seconds(effects)
    print(f"{name:<28}{for_trials:>10.2f} s{for_effects:>10.2f} s")


if __name__ == "__main__":
    main()
