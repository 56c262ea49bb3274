"""k6: its JSON lines (``--out json=FILE``), and the JSON of its summary.

Sources: the k6 manual, "JSON output" and "End of test summary"; files that k6 1.8 wrote.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from perflab.imports.instants import epoch_ns, utc_text
from perflab.imports.json_numbers import Numbers
from perflab.imports.reading import document_of, lines_of, record_of, refused
from perflab.imports.told import NS_PER_MS, RequestRows, Told, share_name
from perflab.recordings import Remark

POINT = re.compile(r'\s*\{.*"(?:type|metric)"\s*:\s*"')
KIND = re.compile(r'"type"\s*:\s*"(Metric|Point)"')
OF_SUMMARY = re.compile(r'"(root_group|http_reqs|http_req_\w+|iteration_duration)"\s*:')
DURATION, DROPPED = "http_req_duration", "dropped_iterations"
_NAMES = {"avg": "mean", "min": "min", "med": "p50", "max": "max"}
_SHARE = re.compile(r"p\((\d{1,2}(?:\.\d+)?|100)\)")


def fits_points(head: str) -> bool:
    """Say whether a file begins with a line of k6's JSON output."""
    first = head.lstrip().partition("\n")[0]
    return POINT.match(first) is not None and KIND.search(first) is not None


def fits_summary(head: str) -> bool:
    """Say whether a file begins as the JSON of a summary."""
    return (
        head.lstrip().startswith("{")
        and not fits_points(head)
        and OF_SUMMARY.search(head) is not None
    )


def read_points(path: Path) -> Told:
    """Read the JSON lines: one request for every point of ``http_req_duration``."""
    rows, reader = RequestRows(), _Points(path)
    dropped = 0.0
    for number, line in lines_of(path):
        if not line.strip():
            continue
        # Ten points tell of one request; the others are not decoded, only seen to be whole.
        if not (line.startswith("{") and line.endswith("}")):
            raise refused(path, number, "it is no JSON object; is the file cut off?")
        if f'"{DURATION}"' in line:
            reader.take(number, line, rows)
        elif f'"{DROPPED}"' in line:
            dropped += reader.value(number, line)
    if not len(rows):
        raise refused(path, 0, f"it has no point of {DURATION}: k6 sent no HTTP request")
    told = rows.told({"began": utc_text(reader.base_ns / 1e9)})
    return _with(told, _dropped(dropped))


class _Points:
    def __init__(self, path: Path) -> None:
        self.base_ns = 0
        self._path = path

    def take(self, number: int, line: str, rows: RequestRows) -> None:
        point = record_of(self._path, number, line)
        if point.get("type") != "Point" or point.get("metric") != DURATION:
            return
        data, tags = self._data(number, point)
        took_ms = Numbers(self._path, data, number).number("value")
        try:
            end_ns = epoch_ns(data.get("time"))
        except ValueError as error:
            raise refused(self._path, number, str(error)) from None
        self.base_ns = self.base_ns or end_ns
        end_ms = (end_ns - self.base_ns) / NS_PER_MS
        status = str(tags.get("status", ""))
        failed = not _succeeded(tags, status)
        code = tags.get("error_code")
        outcome = f"error {code}" if code and status in ("", "0") else status
        rows.add(end_ms - took_ms, math.nan, end_ms, math.nan, outcome, failed)

    def value(self, number: int, line: str) -> float:
        point = record_of(self._path, number, line)
        if point.get("type") != "Point" or point.get("metric") != DROPPED:
            return 0.0
        return Numbers(self._path, self._data(number, point)[0], number).number("value")

    def _data(self, number: int, point: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        data = point.get("data")
        tags = data.get("tags") or {} if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(tags, dict):
            raise refused(self._path, number, "the point has no data with tags")
        return data, tags


def _succeeded(tags: dict[str, Any], status: str) -> bool:
    expected = tags.get("expected_response")
    if expected in ("true", "false"):
        return bool(expected == "true")
    # The tag can be switched off; then what k6 expects where nobody says otherwise.
    return status.isascii() and status.isdigit() and 200 <= int(status) < 400


def read_summary(path: Path) -> Told:
    """Read the summary of ``--summary-export``, or ``data`` of ``handleSummary`` as JSON."""
    document = document_of(path)
    metrics = document.get("metrics")
    if not isinstance(metrics, dict):
        raise refused(path, 0, "it has no 'metrics': it is no summary of k6's")
    # handleSummary is given the numbers one level deeper.
    deeper = ("values",) if "values" in (metrics.get("http_reqs") or {}) else ()
    told = Numbers(path, metrics)
    requests = told.count("http_reqs", *deeper, "count")
    rate = told.number("http_reqs", *deeper, "rate")
    # What k6 calls passes of this rate are requests that failed.
    failed = told.told("http_req_failed", *deeper, "passes")
    times = {}
    for name in told.inside(DURATION, *deeper):
        share = _SHARE.fullmatch(name)
        ours = share_name(float(share[1])) if share else _NAMES.get(name)
        if ours:
            times[ours] = told.told(DURATION, *deeper, name)
    if not times:
        raise refused(path, 0, f"it has no '{DURATION}': k6 sent no HTTP request")
    found = Told(
        requests=requests,
        failures=None if math.isnan(failed) else told.whole(failed, "http_req_failed"),
        duration_s=requests / rate if rate else math.nan,
        throughput_rps=rate,
        times_ms=times,
    )
    return _with(found, _dropped(told.told(DROPPED, *deeper, "count")))


def _dropped(number: float) -> tuple[Remark, ...]:
    if not number > 0:
        return ()
    text = f"k6 left out {number:,.0f} iterations that were planned: no user was free for them"
    return (Remark(code="import.dropped", side="client", text=text),)


def _with(told: Told, remarks: tuple[Remark, ...]) -> Told:
    return replace(told, remarks=(*told.remarks, *remarks))
