"""What real outputs of other tools tell, read from files that the tools wrote."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from perflab.errors import ImportRefused
from perflab.imports.formats import FORMATS, Format, common_format, format_of
from perflab.imports.told import Told

DATA = Path(__file__).parent / "data"
# One file of every format, and which it is.
SAMPLES = {
    "k6-points-1.jsonl": ("k6", "JSON lines"),
    "k6-summary-1.json": ("k6", "summary"),
    "k6-handle-summary.json": ("k6", "summary"),
    "locust-1_stats.csv": ("locust", "CSV"),
    "locust-1_stats_history.csv": ("locust", "CSV"),
    "locust-1_failures.csv": ("locust", "CSV"),
    "oha-1.json": ("oha", "JSON"),
    "oha-nothing-answered.json": ("oha", "JSON"),
    "wrk2-1.txt": ("wrk2", "text"),
    "wrk-1.txt": ("wrk", "text"),
    "ab-1.txt": ("ab", "text"),
    "ab-percentiles-1.csv": ("ab", "percentiles"),
    "ab-requests-1.tsv": ("ab", "requests"),
    "hey-1.txt": ("hey", "text"),
    "hey-requests-1.csv": ("hey", "requests"),
    "vegeta-report-1.json": ("vegeta", "report"),
    "vegeta-requests-1.jsonl": ("vegeta", "requests"),
}


def told(*names: str) -> Told:
    paths = [DATA / name for name in names]
    return common_format(paths).reads(paths)


@pytest.mark.parametrize(("name", "wanted"), SAMPLES.items(), ids=SAMPLES)
def test_a_file_is_recognised_by_its_beginning_as_one_format_alone(
    name: str, wanted: tuple[str, str]
) -> None:
    head = (DATA / name).read_text()
    fitting = [(each.tool, each.name) for each in FORMATS if each.fits(head)]
    assert fitting == [wanted]
    assert format_of(DATA / name, wanted[0]) == format_of(DATA / name)


def test_every_format_has_a_sample() -> None:
    assert {(each.tool, each.name) for each in FORMATS} == set(SAMPLES.values())


@pytest.mark.parametrize("name", [name for name in SAMPLES if "_" not in name])
def test_times_are_in_order_and_failures_no_more_than_requests(name: str) -> None:
    found = told(name)
    known = {key: value for key, value in found.times_ms.items() if not math.isnan(value)}
    order = sorted(
        (float(key[1:].replace("_", ".")), value) for key, value in known.items() if key[0] == "p"
    )
    values = [value for _, value in order]
    assert values == sorted(values)
    if "max" in known and values:
        # Tools round their statistics in different ways.
        assert values[-1] <= known["max"] * 1.01
    if found.requests is not None and found.failures is not None:
        assert 0 <= found.failures <= found.requests


def test_every_point_of_http_req_duration_is_a_request() -> None:
    lines = (DATA / "k6-points-1.jsonl").read_text().splitlines()
    points = [json.loads(line) for line in lines]
    wanted = [
        each["data"]["value"]
        for each in points
        if (each["metric"], each["type"]) == ("http_req_duration", "Point")
    ]
    found = told("k6-points-1.jsonl")
    assert found.requests == len(wanted) > 1
    assert found.rows is not None
    rows = found.rows.to_pandas()
    assert (rows["end_ms"] - rows["start_ms"]).to_numpy() == pytest.approx(wanted, abs=1e-3)
    assert found.times_ms["mean"] == pytest.approx(np.mean(wanted), abs=1e-3)
    # k6 tells when a request ended; none began before the first.
    assert rows["start_ms"].min() == 0
    # Too few requests for a p99: the lab names none, whatever a tool would print.
    assert math.isnan(found.times_ms["p99"])


def test_k6_passes_of_http_req_failed_are_failures() -> None:
    metrics = json.loads((DATA / "k6-handle-summary.json").read_text())["metrics"]
    found = told("k6-handle-summary.json")
    assert found.failures == metrics["http_req_failed"]["values"]["passes"]
    assert found.times_ms["p99"] == metrics["http_req_duration"]["values"]["p(99)"]
    flat = json.loads((DATA / "k6-summary-1.json").read_text())["metrics"]
    assert told("k6-summary-1.json").throughput_rps == flat["http_reqs"]["rate"]


def test_k6_iterations_that_it_left_out_are_told(tmp_path: Path) -> None:
    summary = json.loads((DATA / "k6-summary-1.json").read_text())
    summary["metrics"]["dropped_iterations"] = {"count": 12, "rate": 3.0}
    path = tmp_path / "dropped.json"
    path.write_text(json.dumps(summary))
    (remark,) = format_of(path).reads([path]).remarks
    assert "12 iterations that were planned" in remark.text


def test_locust_files_of_one_load_are_read_together() -> None:
    found = told("locust-1_stats.csv", "locust-1_stats_history.csv", "locust-1_failures.csv")
    with (DATA / "locust-1_stats.csv").open() as file:
        *_, row = csv.DictReader(file)
    assert found.requests == int(row["Request Count"])
    assert found.failures == int(row["Failure Count"]) > 0
    assert found.times_ms["p99_9"] == float(row["99.9%"])
    assert found.settings["users"] == "2"
    assert found.settings["began"].startswith("2026-")
    assert any("503" in each.text for each in found.remarks)


def test_locust_failures_of_another_load_are_refused(tmp_path: Path) -> None:
    stats = tmp_path / "locust-2_stats.csv"
    stats.write_bytes((DATA / "locust-2_stats.csv").read_bytes())
    failures = tmp_path / "locust-2_failures.csv"
    text = (DATA / "locust-1_failures.csv").read_text()
    failures.write_text(text + "GET,/third,OSError(),3,2026-11-23T07:12:42Z,2026-11-23T07:12:44Z\n")
    with pytest.raises(ImportRefused, match="they are of two loads"):
        common_format([stats, failures]).reads([stats, failures])


def test_oha_seconds_become_ms_and_a_bad_status_counts_as_failure() -> None:
    words = json.loads((DATA / "oha-1.json").read_text())
    found = told("oha-1.json")
    assert found.times_ms["p95"] == pytest.approx(words["latencyPercentiles"]["p95"] * 1e3)
    statuses = words["statusCodeDistribution"]
    # oha itself calls every answer a success.
    assert words["summary"]["successRate"] == 1.0
    assert found.failures == statuses.get("503", 0)
    assert found.requests == sum(statuses.values())


def test_oha_counts_what_was_under_way_at_the_end_neither_as_request_nor_as_failure(
    tmp_path: Path,
) -> None:
    words = json.loads((DATA / "oha-1.json").read_text())
    words["errorDistribution"] = {"aborted due to deadline": 4, "connection closed": 1}
    path = tmp_path / "oha.json"
    path.write_text(json.dumps(words))
    found, before = format_of(path).reads([path]), told("oha-1.json")
    assert (found.requests, found.failures) == (before.requests + 1, before.failures + 1)


def test_nothing_answered_has_no_times() -> None:
    found = told("oha-nothing-answered.json")
    assert found.failures == found.requests == 3
    assert all(map(math.isnan, found.times_ms.values()))


def test_wrk2_counts_from_its_plan_and_wrk_does_not() -> None:
    planned = {each.tool for each in FORMATS if each.from_plan}
    assert planned == {"wrk2"}
    found = told("wrk2-1.txt")
    assert found.times_ms["p99"] == 22.95
    assert found.times_ms["p99_9"] == 29.71
    # In the spectrum only.
    assert found.times_ms["p95"] == 15.303
    assert (found.requests, found.failures) == (2001, 61)


def test_the_uncorrected_distribution_of_wrk2_is_left_out(tmp_path: Path) -> None:
    text = (DATA / "wrk2-1.txt").read_text()
    begin, bar, end = text.partition("-" * 58)
    second = begin[begin.index("  Latency Distribution") :]
    second = second.replace("Recorded Latency", "Uncorrected Latency").replace("22.95ms", "1.00ms")
    path = tmp_path / "both.txt"
    path.write_text(begin + "\n" + second + bar + end)
    assert format_of(path).reads([path]).times_ms["p99"] == 22.95


def test_wrk_times_of_every_unit_become_ms(tmp_path: Path) -> None:
    text = (DATA / "wrk-1.txt").read_text().splitlines()
    (at,) = [place for place, line in enumerate(text) if line.strip().startswith("99%")]
    path = tmp_path / "wrk.txt"
    for shown, wanted in (("950.00us", 0.95), ("1.50s", 1500.0), ("1.00m", 60_000.0)):
        path.write_text("\n".join([*text[:at], f"     99%  {shown}", *text[at + 1 :]]))
        assert format_of(path).reads([path]).times_ms["p99"] == pytest.approx(wanted)


def test_ab_percentiles_tell_nothing_else() -> None:
    found = told("ab-percentiles-1.csv")
    assert found.requests is found.failures is None
    assert math.isnan(found.throughput_rps)
    assert "mean" not in found.times_ms
    assert found.rows is None


def test_ab_text_percentiles_and_requests_of_one_load_agree() -> None:
    text, shares, rows = (
        told(name) for name in ("ab-1.txt", "ab-percentiles-1.csv", "ab-requests-1.tsv")
    )
    assert text.requests == rows.requests == 80
    # ab rounds to whole ms in two of the three.
    assert text.times_ms["p50"] == pytest.approx(shares.times_ms["p50"], abs=1)
    assert text.times_ms["max"] == rows.times_ms["max"]
    # Starts are known to the second: too coarse for a throughput.
    assert math.isnan(rows.throughput_rps)


def test_hey_text_and_its_requests() -> None:
    text = told("hey-1.txt")
    assert text.requests == 80
    rows = told("hey-requests-1.csv")
    assert rows.rows is not None
    table = rows.rows.to_pandas()
    assert rows.requests == len(table) == 40
    assert (table["first_byte_ms"] <= table["end_ms"] + 0.2).all()
    assert rows.failures == (table["outcome"] == "503").sum()


def test_hey_errors_are_requests_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "hey.txt"
    more = 'Error distribution:\n  [5]\tGet "http://127.0.0.1:1/": connection refused\n'
    path.write_text((DATA / "hey-1.txt").read_text() + "\n" + more)
    found, before = format_of(path).reads([path]), told("hey-1.txt")
    assert (found.requests, found.failures) == (before.requests + 5, before.failures + 5)


def test_vegeta_report_and_requests() -> None:
    words = json.loads((DATA / "vegeta-report-1.json").read_text())
    report = told("vegeta-report-1.json")
    assert report.times_ms["p99"] == words["latencies"]["99th"] / 1e6
    assert report.requests == words["requests"]
    rows = told("vegeta-requests-1.jsonl")
    assert rows.rows is not None
    table = rows.rows.to_pandas()
    # Every 25 ms, by vegeta's own plan.
    assert np.diff(table["start_ms"]) == pytest.approx(25, abs=15)
    assert set(table["outcome"]) <= {"200", "503"}


def test_a_format_says_what_it_does_about_coordinated_omission() -> None:
    def said(each: Format) -> str:
        return each.omission

    assert all(said(each).endswith((".", ")")) and len(said(each)) > 30 for each in FORMATS)
    assert "--latency-correction" in format_of(DATA / "oha-1.json").omission
