"""The notebook that the benchmarks of sweeps have executed, in the place of a shipped one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import nbformat

# A sweep file names shipped notebooks alone.
NAME = "client_overhead.ipynb"


def write_notebook(folder: Path, cells: Sequence[str]) -> None:
    """Write a notebook of these cells, the first of which has the parameters, into a new folder."""
    folder.mkdir()
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in cells],
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "language_info": {"name": "python"},
        },
    )
    notebook.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(notebook, folder / NAME)
