"""Failures, contradictions and gaps of a file show wherever its numbers do."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from perflab.analysis.between_runs import against_first, compare_runs
from perflab.analysis.evaluation import evaluate
from perflab.errors import ImportRefused
from perflab.recordings import Run, list_runs, open_run
from perflab.recordings.imports import import_files
from perflab.recordings.imports.results import ToolResult, result_columns
from perflab.reports.section import section_text

DATA = Path(__file__).parent / "data"
Change = Callable[[str], str]


def put(old: str, new: str, count: int = 1) -> Change:
    """Return a change of a text, which must hold what is changed."""

    def changed(text: str) -> str:
        assert re.search(old, text)
        return re.sub(old, new, text, count=count)

    return changed


def imported(folder: Path, name: str, *changes: Change, copy: str = "") -> Run:
    text = (DATA / name).read_text()
    for change in changes:
        text = change(text)
    path = folder / f"{copy}{name}"
    path.write_text(text)
    return import_files({"a": [path]}, folder / "runs")


LOST = put("Non-2xx", "  Socket errors: connect 0, read 86, write 0, timeout 34\n  Non-2xx")


@pytest.mark.parametrize(
    ("name", "change", "requests", "failures", "succeeded_rps"),
    [
        ("wrk-1.txt", put("responses: 34", "responses: 914"), 914, 914, 0),
        # 34 late answers may be the 34 bad ones; 86 requests got no answer.
        ("wrk-1.txt", LOST, 1000, 120, math.nan),
        ("ab-1.txt", put("responses:      4", "responses:      80"), 80, 80, 0),
        ("ab-1.txt", put("requests:        0", "requests:        8\n   (Connect: 8, Receive: 0, "
                         "Length: 0, Exceptions: 0)"), 88, 12, 484.47 * 76 / 80),
        ("oha-1.json", put('"200": 79,', '"200": 20, "500": 59,'), 80, 60, 523.13 * 20 / 80),
        ("locust-1_stats.csv", put(",109,4,", ",109,109,"), 109, 109, 0),
        ("k6-summary-1.json", put('"passes": 0,\\s+"fails": 6', '"passes": 3, "fails": 3'), 6, 3,
         184.08 / 2),
        ("k6-machine-summary.json", put('(req_failed"[^}]*matches": )0', r"\g<1>481"), 481, 481, 0),
    ],
)  # fmt: skip
def test_the_share_of_failures_of_every_tool_is_a_response_and_their_answers_are_no_throughput(
    name: str, change: Change, requests: int, failures: int, succeeded_rps: float, tmp_path: Path
) -> None:
    run = imported(tmp_path, name, change)
    (row,) = run.trials().to_dict("records")
    assert (row["requests"], row["errors"]) == (requests, failures)
    assert row["told_failed_percent"] == pytest.approx(100 * failures / requests)
    assert row["told_succeeded_rps"] == pytest.approx(succeeded_rps, rel=1e-3, nan_ok=True)
    assert (
        f"{100 * failures / requests:.3g}"
        in section_text(run, evaluate(run)).split("**Question.**")[0]
    )


@pytest.mark.promise
def test_no_row_of_a_comparison_hides_that_a_side_failed(tmp_path: Path) -> None:
    for n in range(3):
        for side, bad, mean_ms in (("a", 0, 5 - n / 9), ("b", 914, 0.5 + n / 99)):
            text = put("responses: 34", f"responses: {bad}")((DATA / "wrk-1.txt").read_text())
            (tmp_path / f"{side}{n}.txt").write_text(text.replace("4.95", f"{mean_ms:.2f}"))
    sides = {side: [tmp_path / f"{side}{n}.txt" for n in range(3)] for side in "ab"}
    verdicts = [*against_first(import_files(sides, tmp_path))["verdict"]]
    before, after = ([import_files({"x": [path]}, tmp_path) for path in sides[s]] for s in "ab")
    comparison = compare_runs(before, after)
    # Three runs on each side do not make imported loads better or worse.
    assert not comparison.enough
    for verdict in [*verdicts, *comparison.table["verdict"]]:
        found, _, failed = verdict.partition("; ")
        assert found in ("not decided", "not decided: differs, 3 against 3 loads")
        assert failed == "A: 0% failed, B: 100% failed"


def test_times_of_nothing_are_missing(tmp_path: Path) -> None:
    run = imported(
        tmp_path, "wrk-1.txt", put(r"Latency .*", "Latency  0.00us  0.00us  0.00us -nan%")
    )
    times = run.trials().filter(regex="told_service_.*_ms$")
    assert times.isna().all(axis=None)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("wrk-1.txt", put("Running 1s", "Running 1h"), "3600 s lasted 1.00 s (lines 1 and 11)"),
        ("wrk-1.txt", put("914 requests", "91400 requests"), "no 913 requests/s (lines 11, 13)"),
        ("ab-1.txt", put("484.47", "4844.7"), "80 requests in 0.165 s are no 4,845 requests/s"),
        ("ab-1.txt", put("requests:        0", "requests:        8\n   (Connect: 0, Receive: 1, "
                         "Length: 2, Exceptions: 0)"), "sum up to 3, and it tells 8 failed"),
        ("oha-1.json", put('"requestsPerSec": 523', '"requestsPerSec": 52'), "are no 52.1"),
        ("oha-1.json", put('": 31', '": 310'), "histogram has 359 answers, and its statuses 80"),
        ("locust-1_stats.csv", put(",109,4,", ",109,100,"), "100 in all (line 4), and 4.00"),
        ("oha-1.json", put('"successRate": 1.0', '"successRate": 0.5'), "successRate is 50.0%"),
        ("locust-1_stats.csv", put(r"(GET,/,50,3,.*?),23\.05", r"\1,93.05"), "elsewhere 93.1 ms"),
        ("locust-1_stats.csv", put("(Aggregated,109,4),[0-9]+", r"\1,95"), "Median Response Time"),
        ("k6-summary-1.json", put('"fails": 6', '"fails": 60'), "6, and 'http_req_failed' 60"),
    ],
)  # fmt: skip
def test_a_file_that_contradicts_itself_is_told_with_both_numbers_wherever_it_is_used(
    name: str, change: Change, words: str, tmp_path: Path
) -> None:
    run = imported(tmp_path, name, change)
    (row,) = run.trials().to_dict("records")
    for remarks in (row["warnings"], run.record.warnings):
        assert any(words in remark and "contradicts" in remark for remark in remarks)
    assert "a contradiction in 1 load" in section_text(run, evaluate(run)).split("**Question.**")[0]
    table = compare_runs([run], [imported(tmp_path, name, copy="true-")]).table
    assert table["verdict"].str.contains("a contradiction in 1 load, B").all()


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("wrk-1.txt", put("in 1.00s", "in 1.25ms"), "longest time is 0.0254 s"),
        ("oha-1.json", put('"total": 0.152', '"total": 0.00152'), "longest time is 0.0353 s"),
        ("wrk-1.txt", put("90%   10.47ms", "90%    1.47ms"), "(lines 8, 9)"),
        (
            "ab-1.txt",
            put("requests:        0", "requests:        81"),
            "81 failures of 80 requests",
        ),
        ("locust-1_stats.csv", put(",109,4,", ",109,110,"), "110 failures of 109 requests"),
        (
            "oha-1.json",
            put('"average": 0.0061', '"average": 0.61'),
            "ms, and its max 35.3 ms",
        ),
    ],
)
def test_a_file_of_which_nothing_can_be_true_is_refused(
    name: str, change: Change, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ImportRefused, match=re.escape(words)):
        imported(tmp_path, name, change)
    assert not (tmp_path / "runs").exists()


def test_the_newest_of_imports_within_a_second_is_the_latest(tmp_path: Path) -> None:
    ids = [import_files({"a": [DATA / "wrk-1.txt"]}, tmp_path).run_id for _ in range(6)]
    assert [run.run_id for run in list_runs(tmp_path)] == ids
    assert open_run("latest", tmp_path).run_id == ids[-1]


def test_where_nothing_was_answered_no_throughput_succeeded() -> None:
    refused = ToolResult(5, failures=5, duration_s=1, throughput_rps=0, times_ms={}, rated=0)
    assert result_columns(refused)["told_succeeded_rps"] == 0


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("ab-1.txt", {"service_p50_ms": 1, "throughput_rps": 0.01}),
        ("wrk-1.txt", {"service_p50_ms": 0.01, "throughput_rps": 0.01}),
        ("locust-1_stats.csv", {"service_p50_ms": 1}),
        ("oha-1.json", {"service_p50_ms": 1e-6}),
        ("k6-summary-1.json", {"service_p95_ms": 1e-6}),
    ],
)
def test_the_resolution_of_the_source_stands_beside_its_numbers(
    name: str, steps: dict[str, float], tmp_path: Path
) -> None:
    (row,) = imported(tmp_path, name).trials().to_dict("records")
    for column, step in steps.items():
        assert row[f"told_{column}_resolution"] == pytest.approx(step)


def test_files_beside_locusts_statistics_are_left_out_with_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "load_stats.csv").write_bytes((DATA / "locust-1_stats.csv").read_bytes())
    texts = {
        "load_exceptions.csv": "Count,Message,Traceback,Nodes\n3,no,at 1,local\n4,no,at 2,local\n",
        "load_failures.csv": "Method,Name,Error,Occurrences\nGET,/,503,4\n",
        "load_stats_history.csv": "Timestamp,User Count,Type,Name,Total Request Count\n1,2,,a,9\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    run = import_files({"a": sorted(tmp_path.glob("load_*.csv"))}, tmp_path / "runs")
    told = "; ".join(map(str, run.record.warnings))
    for words in ("7 exceptions", "4 failures by error", "stats_history.csv is left out"):
        assert words in told
    assert list(run.trials()["requests"]) == [109]
    with pytest.raises(ImportRefused, match=r"import PREFIX_stats\.csv"):
        import_files({"a": [tmp_path / "load_exceptions.csv"]}, tmp_path / "runs")


@pytest.mark.parametrize("names", [("wrk-1.txt", "wrk-2.txt"), ("ab-1.txt", "ab-1.txt")])
def test_every_report_in_one_file_is_a_load(names: tuple[str, str], tmp_path: Path) -> None:
    first, second = ((DATA / name).read_text() for name in names)
    log = f"$ tool\n{first}$ tool\n{second.replace('27', '28')}$\n"
    (tmp_path / "log.txt").write_text(log)
    trials = import_files({"a": [tmp_path / "log.txt"]}, tmp_path / "runs").trials()
    lines = len(first.splitlines())
    assert list(trials["told_by"]) == ["log.txt, line 2", f"log.txt, line {lines + 3}"]
