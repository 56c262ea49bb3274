"""Columnar buffers of a worker: one fixed set of arrays, written out as raw bytes."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
import pandas as pd

INSTANTS = ("planned_ns", "started_ns", "sent_ns", "first_byte_ns", "done_ns")
COLUMNS = {
    "stage": "b",
    "user": "i",
    **dict.fromkeys(INSTANTS, "q"),
    "connect_ns": "q",
    "status": "h",
    "bytes": "q",
    "error": "b",
}
ERRORS = ("", "connect", "timeout", "reset", "protocol", "status", "body")
STAGES = ("warmup", "measure")
PHASE = "phase_{}_ms"


def parse_server_timing(header: str) -> dict[str, float]:
    """Read a ``Server-Timing`` header: metric name to duration in ms.

    Source: W3C Server Timing, the header field. Entries without ``dur`` are left out.
    """
    phases = {}
    for entry in header.split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "dur" and name:
                try:
                    phases[name] = float(value.strip().strip('"'))
                except ValueError:
                    continue
    return phases


class Buffers:
    """The records of one worker."""

    def __init__(self) -> None:
        self._columns: dict[str, array[int]] = {name: array(code) for name, code in COLUMNS.items()}
        self._phases: dict[str, array[float]] = {}

    def __len__(self) -> int:
        return len(self._columns["stage"])

    def append(self, record: dict[str, int], phases: dict[str, float]) -> None:
        """Add one request; phases not seen before begin as NaN."""
        rows = len(self)
        for name, column in self._columns.items():
            column.append(record[name])
        for name in phases:
            if name not in self._phases:
                self._phases[name] = array("f", [float("nan")]) * rows
        for name, phase in self._phases.items():
            phase.append(phases.get(name, float("nan")))

    def write(self, folder: Path) -> None:
        """Write every column as raw bytes."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, column in self._columns.items():
            (folder / f"{name}.{column.typecode}").write_bytes(column.tobytes())
        for name, phase in self._phases.items():
            (folder / f"{PHASE.format(name)}.f").write_bytes(phase.tobytes())


def read(folder: Path, worker: int) -> pd.DataFrame:
    """Read what :meth:`Buffers.write` wrote, with codes turned into words."""
    data = {
        path.stem: np.frombuffer(path.read_bytes(), dtype=path.suffix[1:])
        for path in sorted(folder.iterdir())
    }
    frame = pd.DataFrame(data)
    frame["stage"] = np.array(STAGES, dtype=object)[frame["stage"]]
    frame["error"] = np.array(ERRORS, dtype=object)[frame["error"]]
    frame["worker"] = np.int16(worker)
    first = ["stage", "worker", *[name for name in COLUMNS if name != "stage"]]
    return frame[first + [name for name in frame.columns if name.startswith("phase_")]]
