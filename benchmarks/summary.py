"""Ten million requests summarised: percentiles with intervals, windows, where the time went.

Each reading runs in a process of its own, in random order; the baseline is pandas' plain quantile
of the same file (percentiles only, no intervals, no windows, no parts). Peak memory is what the
kernel accounts to the process, the interpreter included.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TIMED = """
import resource, sys, time
{imports}
begin = time.perf_counter()
{work}
spent = time.perf_counter() - begin
print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
OURS = (
    "from perflab.analysis.trials.requests import summarise",
    "found = summarise(sys.argv[1]); assert len(found.percentiles) == 10",
)
PANDAS = (
    "import pandas as pd",
    "table = pd.read_parquet(sys.argv[1])\n"
    "good = table[(table['stage'] == 'measure') & (table['error'] == '')]\n"
    "spent_ns = good['done_ns'] - good['planned_ns']\n"
    "spent_ns.quantile([0.5, 0.9, 0.95, 0.99, 0.999])",
)


def make(path: Path, count: int) -> None:
    """Write requests as ``perflab load --out`` does, with two reported phases."""
    rng = np.random.default_rng(1)
    writer: pq.ParquetWriter | None = None
    chunk = 1 << 20
    for first in range(0, count, chunk):
        n = min(chunk, count - first)
        planned = (np.arange(first, first + n) * 100_000).astype(np.int64)
        started = planned + rng.integers(10_000, 60_000, n)
        sent = started + rng.integers(5_000, 20_000, n)
        app_ms = rng.gamma(2.0, 1.5, n).astype(np.float32)
        done = sent + (app_ms * 1e6).astype(np.int64) + rng.integers(50_000, 150_000, n)
        table = pa.table(
            {
                "stage": np.full(n, "measure", dtype=object),
                "worker": np.zeros(n, dtype=np.int16),
                "user": np.zeros(n, dtype=np.int32),
                "planned_ns": planned,
                "started_ns": started,
                "sent_ns": sent,
                "first_byte_ns": done - 1_000,
                "done_ns": done,
                "connect_ns": np.zeros(n, dtype=np.int64),
                "status": np.full(n, 200, dtype=np.int16),
                "bytes": np.full(n, 120, dtype=np.int64),
                "error": np.full(n, "", dtype=object),
                "phase_app_ms": app_ms,
                "phase_commit_ms": (app_ms * 0.6).astype(np.float32),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def timed(parts: tuple[str, str], path: Path) -> tuple[float, float]:
    """Run one reading in its own process; return seconds and peak MB."""
    code = TIMED.format(imports=parts[0], work=parts[1])
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    ways = {"perflab, everything": OURS, "pandas, quantiles only": PANDAS}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(prefix="perflab-summary-") as folder:
        path = Path(folder) / "requests.parquet"
        make(path, given.requests)
        for _ in range(given.rounds):
            for name in random.sample(list(ways), len(ways)):
                found[name].append(timed(ways[name], path))
    print(f"{given.requests:,} requests; medians of {given.rounds} rounds")
    print(f"{'':24}{'seconds':>9}{'peak MB':>9}   against pandas")
    plain = found["pandas, quantiles only"]
    for name, rows in found.items():
        ratios = [row[0] / base[0] for row, base in zip(rows, plain, strict=True)]
        print(
            f"{name:24}{statistics.median(r[0] for r in rows):>9.2f}"
            f"{statistics.median(r[1] for r in rows):>9.0f}   {statistics.median(ratios):.2f} x"
        )


if __name__ == "__main__":
    main()
