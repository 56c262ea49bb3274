"""Write the expected files anew: ``python -m tests.golden.write``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.golden.outputs import EXPECTED, outputs_of
from tests.golden.recordings import NAMES, write_recording


def write(name: str) -> None:
    """Write the expected files of one recording; files of outputs that are no more are removed."""
    folder = EXPECTED / name
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as root:
        outputs = outputs_of(write_recording(Path(root), name))
    for file, text in outputs.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:] or NAMES:
        write(each)
