"""The order in which several processes begin with the tests of a session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest


def spread(tests: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """Return tests in an order in which each process begins with files that may take longest.

    With ``--dist worksteal`` each process begins with an equal part of the tests, in their order;
    one that has done its own takes over others from the end of another part. How long tests may
    take is told by their marker ``timeout``; those without one follow in the order of their files.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for test in tests:
        files.setdefault(test.path, []).append(test)
    limits_s = {file: max(map(_limit_s, members)) for file, members in files.items()}
    long = sorted(filter(limits_s.__getitem__, files), key=limits_s.__getitem__, reverse=True)
    others = [test for test in tests if not limits_s[test.path]]
    order: list[pytest.Item] = []
    for number in range(processes):
        part = [test for file in long[number::processes] for test in files[file]]
        size = (len(tests) - len(order)) // (processes - number)
        taken = max(0, size - len(part))
        order += [*part, *others[:taken]]
        del others[:taken]
    return [*order, *others]


def _limit_s(test: pytest.Item) -> float:
    marker = test.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0
