"""Outputs of other tools are read as the tools wrote them, or with changes."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflab.errors import ImportRefused
from perflab.recordings.imports.reading import number, step, time_ms
from perflab.recordings.imports.recording import FORMATS, loads_of
from perflab.recordings.imports.results import ToolResult
from tests.support.examples import examples

DATA = Path(__file__).parent / "data"
# The tool of each file.
SAMPLES = {
    "k6-summary-1.json": "k6",
    "k6-handle-summary.json": "k6",
    "k6-machine-summary.json": "k6",
    "locust-1_stats.csv": "locust",
    "oha-1.json": "oha",
    "wrk-1.txt": "wrk",
    "ab-1.txt": "ab",
    "load.json": "perflab",
}
# A test's temporary folder does not change between examples.
ONCE = [HealthCheck.function_scoped_fixture]


def results_of(path: Path) -> list[ToolResult]:
    return [load.result for load in loads_of({"a": [path]})[0]["a"]]


def read_file(path: str | Path) -> ToolResult:
    (result,) = results_of(DATA / path)
    return result


@pytest.mark.parametrize(("name", "tool"), SAMPLES.items(), ids=SAMPLES)
def test_a_file_is_recognised_by_its_beginning_as_one_tools_alone(name: str, tool: str) -> None:
    head = (DATA / name).read_text()
    assert [form.tool for form in FORMATS if form.fits(head)] == [tool]


def test_k6_passes_of_http_req_failed_are_failures() -> None:
    metrics = json.loads((DATA / "k6-handle-summary.json").read_text())["metrics"]
    result = read_file("k6-handle-summary.json")
    assert result.failures == metrics["http_req_failed"]["values"]["passes"]
    assert result.times_ms["p99"] == metrics["http_req_duration"]["values"]["p(99)"]
    flat = json.loads((DATA / "k6-summary-1.json").read_text())["metrics"]
    assert read_file("k6-summary-1.json").throughput_rps == flat["http_reqs"]["rate"]


def test_k6_iterations_that_it_left_out_are_told(tmp_path: Path) -> None:
    summary = json.loads((DATA / "k6-summary-1.json").read_text())
    summary["metrics"]["dropped_iterations"] = {"count": 12, "rate": 3.0}
    path = tmp_path / "dropped.json"
    path.write_text(json.dumps(summary))
    (remark,) = read_file(path).remarks
    assert "12 iterations that were planned" in remark.text


def test_checks_that_failed_in_k6_are_told_in_each_form(tmp_path: Path) -> None:
    flat = json.loads((DATA / "k6-summary-1.json").read_text())
    flat["metrics"]["checks"] = {"passes": 30, "fails": 70, "value": 0.3}
    handled = json.loads((DATA / "k6-handle-summary.json").read_text())
    handled["metrics"]["checks"] = {"values": {"passes": 30, "fails": 70, "rate": 0.3}}
    machine = json.loads((DATA / "k6-machine-summary.json").read_text())
    for metric in machine["results"]["checks"]["metrics"]:
        if metric["name"] == "checks_failed":
            metric["values"] = {"matches": 70, "total": 100, "rate": 0.7}
    for form, summary in enumerate((flat, handled, machine)):
        path = tmp_path / f"{form}.json"
        path.write_text(json.dumps(summary))
        result = read_file(path)
        assert result.checks == (70, 100)
        assert any(
            "70.0% of the checks of its script failed" in str(each) for each in result.remarks
        )
    assert read_file("k6-machine-summary.json").checks == (0, 481)


@pytest.mark.parametrize("checks", [None, [], {"metrics": None}, {"metrics": [None]}])
def test_a_summary_of_k6_without_checks_is_read(tmp_path: Path, checks: object) -> None:
    summary = json.loads((DATA / "k6-machine-summary.json").read_text())
    summary["results"]["checks"] = checks
    path = tmp_path / "without-checks.json"
    path.write_text(json.dumps(summary))
    assert read_file(path).checks == (0, 0)


def test_locust_is_read_from_the_row_of_all_requests() -> None:
    result = read_file("locust-1_stats.csv")
    with (DATA / "locust-1_stats.csv").open() as file:
        *_, row = csv.DictReader(file)
    assert result.requests == int(row["Request Count"])
    assert result.failures == int(row["Failure Count"]) > 0
    assert result.times_ms["p99_9"] == float(row["99.9%"])


def test_oha_seconds_become_ms_and_a_bad_status_counts_as_failure() -> None:
    words = json.loads((DATA / "oha-1.json").read_text())
    result = read_file("oha-1.json")
    assert result.times_ms["p95"] == pytest.approx(words["latencyPercentiles"]["p95"] * 1e3)
    statuses = words["statusCodeDistribution"]
    # oha itself calls every answer a success.
    assert words["summary"]["successRate"] == 1.0
    assert result.failures == statuses.get("503", 0)
    assert result.requests == sum(statuses.values())


def test_oha_counts_what_was_under_way_at_the_end_neither_as_request_nor_as_failure(
    tmp_path: Path,
) -> None:
    words = json.loads((DATA / "oha-1.json").read_text())
    words["errorDistribution"] = {"aborted due to deadline": 4, "connection closed": 1}
    path = tmp_path / "oha.json"
    path.write_text(json.dumps(words))
    result, before = read_file(path), read_file("oha-1.json")
    assert (result.requests, result.failures) == (before.requests + 1, before.failures + 1)


def test_nothing_answered_has_no_times(tmp_path: Path) -> None:
    words = json.loads((DATA / "oha-1.json").read_text())
    known = ("total", "requestsPerSec")
    # What oha 1.16 writes of a closed port.
    for place in ("summary", "latencyPercentiles"):
        words[place] = {n: value if n in known else None for n, value in words[place].items()}
    refused = {"Connection refused (os error 111)": 3}
    words |= {"statusCodeDistribution": {}, "errorDistribution": refused}
    path = tmp_path / "oha.json"
    path.write_text(json.dumps(words))
    result = read_file(path)
    assert result.failures == result.requests == 3
    assert all(map(math.isnan, result.times_ms.values()))


@pytest.mark.parametrize(
    ("shown", "expected_ms", "step_ms"),
    [("950.00us", 0.95, 1e-5), ("4.04ms", 4.04, 0.01), ("1.50s", 1500, 10), ("1.00m", 60e3, 600)],
)
def test_times_of_every_unit_become_ms_with_the_step_of_their_last_digit(
    shown: str, expected_ms: float, step_ms: float
) -> None:
    assert (time_ms(shown), step(shown)) == pytest.approx((expected_ms, step_ms))


@settings(max_examples=examples(300), deadline=None)
@given(st.text(max_size=12))
def test_any_text_is_a_finite_number_or_refused(text: str) -> None:
    for parse in (number, time_ms):
        try:
            value = parse(text)
        except ValueError:
            continue
        assert math.isfinite(value) or "nan" in text.lower()


def totals(path: Path) -> list[tuple[int, int | None]]:
    return [(result.requests, result.failures) for result in results_of(path)]


def blank_line(text: str, place: int) -> str:
    lines = text.splitlines(keepends=True)
    return "".join([*lines[: place % (len(lines) + 1)], "\n", *lines[place % (len(lines) + 1) :]])


def reordered(text: str, place: int) -> str:
    """Turn the rows of a table; other files have no independent rows."""
    header, *rows = text.splitlines(keepends=True)
    turned = rows[place % len(rows) :] + rows[: place % len(rows)] if len(rows) > 1 else rows
    return "".join([header, *turned]) if text.count(",") > 10 * len(rows) else text


HARMLESS = {
    "byte order mark": lambda text, _: f"\ufeff{text}",
    "CRLF": lambda text, _: text.replace("\n", "\r\n"),
    "blank line": blank_line,
    "reordered": lambda text, place: text if text.startswith("{") else reordered(text, place),
    "prompt": lambda text, _: f"$ tool\n{text}\n$ " if text.startswith(("Run", "This")) else text,
}
DAMAGING = {
    "cut": lambda text, place: text[: place % len(text)],
    "doubled": lambda text, _: text + text,
    "a line doubled": lambda text, place: "".join(
        line * (1 + (n == place % (text.count("\n") + 1)))
        for n, line in enumerate(text.splitlines(keepends=True))
    ),
    "lines turned": lambda text, place: "\n".join(
        (lines := text.split("\n"))[place % len(lines) :] + lines[: place % len(lines)]
    ),
    "another locale": lambda text, _: re.sub(r"(\d)\.(\d)", r"\1,\2", text),
}


@pytest.mark.parametrize("kind", [*HARMLESS, *DAMAGING])
@settings(max_examples=examples(40), deadline=None, suppress_health_check=ONCE)
@given(name=st.sampled_from([*SAMPLES]), place=st.integers(0, 10_000))
def test_a_copy_is_read_with_the_same_totals_and_only_a_damaged_one_is_refused(
    kind: str, name: str, place: int, tmp_path: Path
) -> None:
    path = tmp_path / name
    copied = {**HARMLESS, **DAMAGING}[kind]((DATA / name).read_text(), place)
    path.write_bytes(copied.encode())
    try:
        read = totals(path)
    except ImportRefused:
        assert kind in DAMAGING
        return
    assert read == totals(DATA / name)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=ONCE)
@given(name=st.sampled_from([*SAMPLES]), data=st.data())
def test_a_file_with_any_bytes_changed_is_read_or_refused(
    name: str, data: st.DataObject, tmp_path: Path
) -> None:
    whole = bytearray((DATA / name).read_bytes())
    begin = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(begin, min(len(whole), begin + 20)))
    whole[begin:end] = data.draw(st.binary(max_size=20))
    path = tmp_path / name
    path.write_bytes(bytes(whole))
    try:
        results = results_of(path)
    except ImportRefused:
        return
    for result in results:
        assert all(value >= 0 or math.isnan(value) for value in result.times_ms.values())
        assert 0 <= (result.failures or 0) <= result.requests
