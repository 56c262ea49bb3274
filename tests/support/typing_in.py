"""The lab's command, typed in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def perflab(
    *words: str, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Type ``perflab`` with these words in a folder, with further variables in the environment."""
    program = str(Path(sys.executable).with_name("perflab"))
    return subprocess.run(
        [program, *words], cwd=cwd, env=os.environ | variables, capture_output=True, text=True
    )
