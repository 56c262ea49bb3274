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
        ("perflab.reports.ledger", {"scipy", "seaborn", "httpx"}),
        ("perflab.api", {"scipy", "httpx", "psycopg2", "rich"} | DRAWS),
    ],
)
def test_a_process_imports_only_what_it_uses(module: str, unused: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert unused.isdisjoint(done.stdout.split())
