"""Imported runs mark what is missing; files that cannot be imported are refused with a way out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from perflab.analysis.between_runs import against_first, compare_runs
from perflab.errors import ImportRefused, ParameterError, RecordingError
from perflab.recordings import Run
from perflab.recordings.imports import import_files
from perflab.reports.runs import judged_runs
from perflab.statistics.two_samples import shift
from tests.support.synthetic import write_run

DATA = Path(__file__).parent / "data"


def imported(root: Path, **groups: str) -> Run:
    """Import files, whose names stand in one text per treatment."""
    files = {name: [DATA / file for file in texts.split()] for name, texts in groups.items()}
    return import_files(files, root)


def wrk(folder: Path, name: str, mean_ms: float) -> Path:
    """Write a report of wrk with a planted average."""
    text = (DATA / "wrk-1.txt").read_text()
    (line,) = [row for row in text.splitlines() if row.startswith("    Latency  ")]
    path = folder / f"{name}.txt"
    _, mean, *_ = line.split()
    path.write_text(text.replace(line, line.replace(mean, f"{mean_ms:.4f}ms")))
    return path


@pytest.mark.promise
def test_a_trial_is_not_judged_and_never_valid(tmp_path: Path) -> None:
    run = imported(tmp_path, a="wrk-1.txt wrk-2.txt")
    assert set(run.trials()["state"]) == {"not judged"}
    assert len(run.valid_trials()) == 0
    assert len(run.compared_trials()) == 2
    assert run.problems == []
    for reasons in run.trials()["reasons"]:
        assert [reason.code for reason in reasons] == ["import.not_judged"]
    assert "2, not judged" in repr(run)


@pytest.mark.promise
def test_nothing_is_imported_into_the_folder_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getuid", lambda: 61_234)
    with pytest.raises(RecordingError, match="belongs to another user"):
        imported(tmp_path, a="wrk-1.txt")
    assert [*tmp_path.iterdir()] == []


def test_what_the_tool_does_not_tell_is_missing_and_no_zero(tmp_path: Path) -> None:
    words = json.loads((DATA / "k6-summary-1.json").read_text())
    del words["metrics"]["http_req_failed"]
    file = tmp_path / "summary.json"
    file.write_text(json.dumps(words))
    run = import_files({"a": [file]}, tmp_path / "runs")
    for row in run.trials().to_dict("records"):
        # The lab's own columns stay empty: response time is not computed from service times.
        for name in ("mean_ms", "p50_ms", "p99_ms", "throughput_rps", "service_p99_ms",
                     "generator_lag_p99_ms", "client_cpu_share", "littles_law_ratio"):  # fmt: skip
            assert math.isnan(row[name]), name
        for name in ("errors", "unsent", "capped", "server_count"):
            assert row[name] == -1, name
        assert math.isnan(row["told_service_p99_9_ms"])
        assert row["told_service_p95_ms"] > 0
        assert any("response time is not computed" in remark.text for remark in row["warnings"])
    assert run.requests(None, list(run.trials()["trial_id"])).empty
    assert "planned instants" in run.record.notes["import"]["missing"]


def test_a_percentile_of_too_few_requests_is_kept_and_said(tmp_path: Path) -> None:
    run = imported(tmp_path, a="ab-1.txt")
    (row,) = run.trials().to_dict("records")
    assert row["told_service_p99_ms"] > 0
    assert any("80 requests are too few for" in str(remark) for remark in row["warnings"])


def test_treatments_are_compared_unpaired_with_n_loads_a_side(tmp_path: Path) -> None:
    a = [wrk(tmp_path, f"a{n}", 10 + n / 10) for n in range(5)]
    b = [wrk(tmp_path, f"b{n}", 20 + n / 5) for n in range(6)]
    run = import_files({"a": a, "b": b}, tmp_path / "runs")
    comparison = against_first(run).set_index("response")
    row = comparison.loc["told_service_mean_ms"]
    assert (row["trials_a"], row["trials_b"]) == (5, 6)
    sides = [[s + n / d for n in range(k)] for s, d, k in ((20, 5, 6), (10, 10, 5))]
    ratio, low, high = np.exp(shift(*map(np.log, sides))[:3])
    assert row["effect"] == pytest.approx(ratio)
    # wrk tells times to a hundredth of a ms, which lies within the interval.
    assert 0.999 * low < row["low"] < low < high < row["high"] < 1.001 * high
    # Imported loads are never called better or worse.
    failed = "A: 3.72% failed, B: 3.72% failed"
    assert row["verdict"] == f"not decided: differs, 5 against 6 loads; {failed}"
    assert {*comparison["verdict"]} <= {row["verdict"], f"not decided; {failed}"}
    assert comparison["treatment"].eq("b / a").all()


def test_runs_of_imports_are_compared_with_each_other_and_not_with_the_labs(tmp_path: Path) -> None:
    before, after = (imported(tmp_path, a=f"wrk-{n}.txt wrk-{n + 1}.txt") for n in (1, 3))
    comparison = compare_runs([before], [after])
    assert comparison.obstacles == ()
    assert set(comparison.table["trials_a"]) == set(comparison.table["trials_b"]) == {2}
    other = imported(tmp_path, a="ab-1.txt")
    assert any("parameter tool" in text for text in compare_runs([before], [other]).obstacles)
    lab_run = write_run(tmp_path, blocks=2, requests=60, experiment="imported")
    obstacles = compare_runs([lab_run], [before]).obstacles
    assert any("on imported" in text for text in obstacles)


def test_verdicts_are_taken_from_no_imported_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path))
    imported(tmp_path, a="wrk-1.txt")
    lab_run = write_run(tmp_path, blocks=2, requests=60)
    assert [run.run_id for run in judged_runs()] == [lab_run.run_id]


def written(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: Path) -> str:
    """Return the text of a refused import, after a check that nothing was written."""
    runs = path.parent / "runs"
    runs.mkdir()
    with pytest.raises(ImportRefused) as refused:
        import_files({"a": [path]}, runs)
    assert str(path) in str(refused.value)
    assert list(runs.iterdir()) == []
    runs.rmdir()
    return str(refused.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (b"\x1f\x8b\x08\x00\x00", "unpack it"),
        ("Summary:\n".encode("utf-16"), "save it as UTF-8"),
        (b"{}", "it is no output of"),
        (b"[1, 2, 3]", "it is no output of"),
        (b"hello\n", "docs/how-to/import.md lists"),
        (b"timeStamp,elapsed,label\n1,2,a\n", "JTL of JMeter; 'jmeter -g"),
        (b'<?xml version="1.0"?>\n<testResults version="1.2">\n', "'perflab duel' measures"),
        (b'{"type":"Metric","data":{},"metric":"http_reqs"}\n', "k6 with --summary-export FILE"),
        (b"metric_name,timestamp,metric_value\n", "k6 with --summary-export FILE"),
        (b"Running 1s test @ http://h/\n  Thread calibration: mean lat.: 1ms\n", "no output of"),
    ],
)
def test_what_no_tool_wrote_or_holds_too_little_names_the_way_out(
    content: bytes, message: str, tmp_path: Path
) -> None:
    assert message in refusal(written(tmp_path, "file", content))


def test_a_file_that_is_larger_than_any_report_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path, "wrk.txt", (DATA / "wrk-1.txt").read_bytes())
    with path.open("ab") as file:
        # A sparse file of gigabytes takes no room.
        file.truncate(3 * 2**30)
    assert "at most 268,435,456 are allowed" in refusal(path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("wrk-1.txt", lambda text: text.replace("ms ", "xs ", 1), "line 4"),
        ("wrk-1.txt", lambda text: text.replace("913.12", "9,13"), "LC_ALL=C"),
        ("wrk-1.txt", lambda text: text + text, "line 15 is the same as wrk-1.txt"),
        ("ab-1.txt", lambda text: text.replace("Complete", "Incomplete"), "without its requests"),
        ("locust-1_stats.csv", lambda text: text.replace("109,4,", "109,-4,"), "line 4"),
        ("locust-1_stats.csv", lambda text: text[:-2], "line 4: it ends within a line"),
        ("k6-summary-1.json", lambda text: text.replace('"count": 6', '"count": 6.5'), "a count"),
        ("oha-1.json", lambda text: text.replace('"total": 0.', '"total": -0.'), "at least 0"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused_where_it_stands(
    name: str, change: Callable[[str], str], message: str, tmp_path: Path
) -> None:
    text = (DATA / name).read_text()
    changed = change(text)
    assert changed != text
    assert message in refusal(written(tmp_path, name, changed))


def test_a_bad_file_after_good_ones_leaves_nothing_behind(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    bad = written(tmp_path, "bad.txt", (DATA / "wrk-2.txt").read_bytes()[:300])
    with pytest.raises(ImportRefused, match=r"bad\.txt"):
        import_files({"a": [DATA / "wrk-1.txt", bad]}, runs)
    assert list(runs.iterdir()) == []


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"a": []}, "has no file"),
        ({}, "no file was named"),
        ({"a b": [DATA / "wrk-1.txt"]}, "a name has letters"),
        ({"../a": [DATA / "wrk-1.txt"]}, "a name has letters"),
        ({"a": [DATA / "wrk-1.txt"] * 2}, "the same as"),
        ({"a": [DATA / "wrk-1.txt"], "b": [DATA / "ab-1.txt"]}, "holds loads of one tool"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_before_anything_is_written(
    groups: dict[str, list[Path]], message: str, tmp_path: Path
) -> None:
    with pytest.raises((ParameterError, ImportRefused), match=message):
        import_files(groups, tmp_path)
    assert list(tmp_path.iterdir()) == []
