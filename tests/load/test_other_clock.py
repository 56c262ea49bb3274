"""What another host wrote is brought to this one's clock, and nothing else of it changes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.load import chunk_record, columns, message_record, progress_record
from perflab.load.looks import Looks
from perflab.load.other_clock import INSTANTS, shift_rows, shifted

S = 1_000_000_000
FILES = {
    columns.REQUESTS: columns.ROW,
    chunk_record.FILE: chunk_record.ROW,
    progress_record.FILE: progress_record.ROW,
    message_record.FILE: message_record.ROW,
}


def written(folder: Path, seed: int) -> dict[str, np.ndarray]:
    """Write three rows of each kind, some of whose fields are 0, and return them."""
    random = np.random.default_rng(seed)
    found = {}
    for name, row in FILES.items():
        rows = np.zeros(3, dtype=row)
        for field in row.names or ():
            top = 1000 * S if field.endswith("_ns") or field == "key" else 100
            rows[field] = random.integers(1, top, 3) * random.integers(0, 2, 3)
        (folder / name).write_bytes(rows.tobytes())
        found[name] = rows
    return found


@settings(max_examples=30)
@given(by_ns=st.integers(-(10**17), 10**17), seed=st.integers(0, 1000))
def test_every_instant_is_moved_and_what_did_not_happen_stays_so(by_ns: int, seed: int) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        before = written(folder, seed)
        shift_rows(folder, by_ns)
        for file, row in FILES.items():
            after = np.fromfile(folder / file, dtype=row)
            for field in row.names or ():
                old = before[file][field]
                is_instant = field in INSTANTS[file][1]
                moved = np.where(old == 0, 0, old + by_ns) if is_instant else old
                assert (after[field] == moved).all(), (file, field)


def test_all_fields_that_are_instants_are_known_as_such() -> None:
    for file, row in FILES.items():
        named = {each for each in row.names or () if each.endswith("_ns")}
        assert named - set(columns.DURATIONS) <= set(INSTANTS[file][1])


def test_files_that_are_not_there_or_empty_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / columns.REQUESTS).write_bytes(b"")
    shift_rows(tmp_path, 5)
    assert [path.name for path in tmp_path.iterdir()] == [columns.REQUESTS]


def test_a_report_is_moved_with_its_looks() -> None:
    looks = {"began_ns": 7 * S, "woken_us": [1_000, 2_000], "late_ms": [0.1, 0.2]}
    report = {"start_ns": 8 * S, "lasted_ns": 3 * S, "looks": looks}
    found = shifted(report, -5 * S)
    assert (found["start_ns"], found["lasted_ns"]) == (3 * S, 3 * S)
    moved = Looks.of(report["looks"]).woken_ns - Looks.of(found["looks"]).woken_ns
    assert moved.tolist() == [5 * S, 5 * S]
