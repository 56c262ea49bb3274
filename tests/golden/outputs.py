"""What is kept of a recording: its findings, the table of each figure, and of some its page.

Of a long table every so many rows are kept, and a last line with its length and, by column, the sum
of its absolute numbers or a checksum of its texts: whatever changes, that line does.
"""

from __future__ import annotations

import csv
import io
import math
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from perflab.analysis.evaluation import Finding
from perflab.recordings import Run
from perflab.reports.figures import views_of
from perflab.reports.rules import findings_of as judged
from perflab.reports.section import page_text
from tests.support.findings import findings_table

EXPECTED = Path(__file__).parent / "expected"
DIGITS = 9
# The last of nine digits may be rounded the other way.
TOLERANCE = 1.1e-8
MOST_ROWS = 10
# Pages say the same numbers in words: that is seen once for each experiment.
WITH_PAGE = "claimed"


def outputs_of(run: Run) -> dict[str, str]:
    """Return what is kept of a recording, by the name of its file.

    Of one without requests that is what its trials' rows say: no figures, and no page.
    """
    findings = judged(run)
    found = {"findings.csv": _as_numbers(findings)}
    if run.table("samples").empty and ("requests" in run.missing or run.requests().empty):
        return found
    figures = {view.name: view.shown(run) for view in views_of(run)}
    found |= {f"figure-{name}.csv": as_csv(table) for name, table in figures.items()}
    return found | ({"page.md": page_text(run, findings)} if run.run_id.endswith(WITH_PAGE) else {})


def findings_of(run: Run) -> str:
    """Return every claim of a recording as numbers."""
    return _as_numbers(judged(run))


def _as_numbers(findings: Sequence[Finding]) -> str:
    return as_csv(findings_table(findings), whole=True)


def as_csv(table: pd.DataFrame, whole: bool = False) -> str:
    """Return a table with numbers of nine digits, a long one in extracts."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(table.columns)
    every = 1 if whole else max(1, math.ceil(len(table) / MOST_ROWS))
    for row in table.iloc[::every].itertuples(index=False):
        writer.writerow(map(_cell, row))
    if every > 1:
        sums = [_sum(table.iloc[:, place]) for place in range(table.shape[1])]
        writer.writerow([f"all {len(table)} rows", *sums])
    return target.getvalue()


def _sum(column: pd.Series) -> str:
    if pd.api.types.is_numeric_dtype(column):
        return _cell(float(column.abs().sum()))
    return f"{zlib.crc32(chr(10).join(map(_cell, column)).encode()):08x}"


def _cell(value: object) -> str:
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


def difference(expected: str, found: str) -> str:
    """Return the first line that differs, beyond the last digit of a number; or nothing."""
    return next(_differences(expected, found), "")


def _differences(expected: str, found: str) -> Iterator[str]:
    rows = [list(csv.reader(io.StringIO(text))) for text in (expected, found)]
    for place, (one, other) in enumerate(zip(*rows, strict=False), start=1):
        if len(one) != len(other) or not all(map(_same, one, other)):
            yield f"line {place}: expected {one}, found {other}"
    if len(rows[0]) != len(rows[1]):
        yield f"expected {len(rows[0])} lines, found {len(rows[1])}"


def _same(expected: str, found: str) -> bool:
    if expected == found:
        return True
    try:
        return math.isclose(float(expected), float(found), rel_tol=TOLERANCE, abs_tol=1e-12)
    except ValueError:
        return False
