"""Shows the summary of a load that was kept."""

from __future__ import annotations

from pathlib import Path

from perflab.analysis.time_parts import parts_of_load
from perflab.cli.outputs import frame_table, print_table
from perflab.errors import RecordingError
from perflab.load.records.record import FILE, read
from perflab.load.summary_table import table
from perflab.reports.cells import cell_text


def show_load(folder: Path) -> None:
    """Print the summary of a load, and where the time went."""
    try:
        print(table(read(folder)))
    except (OSError, ValueError) as error:
        raise RecordingError(f"{folder / FILE}: cannot be read: {error}") from None
    parts = parts_of_load(folder / "requests.parquet")
    if len(parts):
        print()
        print_table(frame_table(parts.rename_axis("part, mean ms").reset_index().map(cell_text)))
