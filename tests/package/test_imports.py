"""What starts often starts soon: it imports nothing that it does not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

DRAWS = {"matplotlib", "seaborn"}


@pytest.mark.parametrize(
    ("module", "unused"),
    [
        ("perflab.cli", {"numpy", "pandas", "pydantic", "perflab.api"} | DRAWS),
        ("perflab.load.options", {"numpy", "pandas", "asyncio"} | DRAWS),
        ("perflab.load.workers.worker", {"pandas", "scipy"} | DRAWS),
        ("perflab.trials.conductor", {"scipy", "httpx"} | DRAWS),
        # What the command `claims` reads its answers with.
        ("perflab.reports.ledger", {"aiohttp", "scipy", "httpx"} | DRAWS),
        ("perflab.api", {"aiohttp", "scipy", "httpx", "psycopg2", "rich"} | DRAWS),
    ],
)
def test_a_process_imports_only_what_it_uses(module: str, unused: set[str]) -> None:
    assert unused.isdisjoint(imported_by(f"import {module}"))


@pytest.mark.promise
def test_nothing_that_draws_is_imported_to_judge_a_run() -> None:
    code = """
from perflab import systems
from perflab.reports.rules import findings_of, rules_of
assert any([rules_of(system) for system in systems.systems()])
"""
    assert DRAWS.isdisjoint(imported_by(code))


def imported_by(code: str) -> set[str]:
    """Return the modules that a process has imported after this code."""
    code = f"{code}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
