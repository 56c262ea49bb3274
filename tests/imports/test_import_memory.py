"""A file of any size is read a line at a time."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

from perflab.imports.formats import format_of

DATA = Path(__file__).parent / "data"
REQUESTS = 4_000


def test_a_long_file_of_k6_takes_a_small_part_of_its_size_in_memory(tmp_path: Path) -> None:
    lines = (DATA / "k6-points-1.jsonl").read_text().splitlines()
    points = [line for line in lines if json.loads(line)["type"] == "Point"]
    of_one = [line for line in points if '"http_req_' in line][:8]
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        for _ in range(REQUESTS):
            file.writelines(f"{line}\n" for line in of_one)
    form = format_of(path, "k6")
    form.reads([DATA / "k6-points-1.jsonl"])
    tracemalloc.start()
    try:
        found = form.reads([path])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.requests == REQUESTS
    # 11 MB, of which 40 bytes a request are kept, and several copies at the end.
    assert most < path.stat().st_size / 8
