"""``perflab import`` as it is typed: which file belongs to which treatment, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perflab.recordings import list_runs
from tests.cli.conftest import Tell

DATA = Path(__file__).parents[1] / "recordings" / "imports" / "data"


@pytest.fixture(autouse=True)
def _among_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("wrk-1.txt wrk-2.txt", {"imported": ["wrk-1.txt", "wrk-2.txt"]}),
        (
            "a=wrk-1.txt b=wrk-3.txt a=wrk-2.txt",
            {"a": ["wrk-1.txt", "wrk-2.txt"], "b": ["wrk-3.txt"]},
        ),
    ],
)
def test_a_file_may_name_its_treatment(
    perflab: Tell, tmp_path: Path, words: str, expected: dict[str, list[str]]
) -> None:
    perflab(tmp_path, "import", *words.split())
    by_treatment = list_runs(tmp_path)[-1].trials().groupby("treatment")["told_by"]
    assert by_treatment.agg(list).to_dict() == expected


def test_it_says_whose_file_it_is_what_is_missing_and_who_corrects(
    perflab: Tell, tmp_path: Path
) -> None:
    output, _ = perflab(tmp_path, "import", "wrk-1.txt", COLUMNS="300")
    assert "wrk, text" in output
    assert "missing: planned instants, generator lag" in output
    assert "wrk corrects by a guess" in output
    assert "vouches for none of these numbers" in output


def test_loads_that_were_kept_are_compared_and_told_where_they_are_not_alike(
    perflab: Tell, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    output, _ = perflab(runs, "import", "a=load.json", "b=load-2", COLUMNS="300")
    assert "asked for different requests or arrivals" in output
    assert "no trials of a run" in output
    run = list_runs(runs)[-1]
    assert list(run.trials()["told_by"]) == ["data/load.json", "load-2/load.json"]
    assert list(run.trials()["told_throughput_rps"].round()) == [3885, 100]
    assert list(run.trials()["told_service_p99_ms"].isna()) == [False, True]
    other = tmp_path / "other"
    other.mkdir()
    text = (DATA / "load.json").read_text()
    (other / "load.json").write_text(text.replace('"p50": 0.19', '"p50": 0.29'))
    for load in ("load.json", str(other)):
        alone, _ = perflab(runs, "import", f"a={load}", COLUMNS="300")
        assert "asked for different" not in alone
    ids = [each.run_id for each in list_runs(runs)[-2:]]
    assert "told_service_p50_ms" in perflab(runs, "compare", *ids, COLUMNS="300")[0]


def test_a_load_that_was_invalid_is_refused(perflab: Tell, tmp_path: Path) -> None:
    text = (DATA / "load.json").read_text()
    reason = '{"code": "generator.late", "side": "client", "text": "it was late"}'
    late = f'"valid": false,\n "reasons": [{reason}]'
    (tmp_path / "load.json").write_text(text.replace('"valid": true,\n "reasons": []', late))
    _, errors = perflab(tmp_path / "runs", "import", str(tmp_path), code=1)
    assert "INVALID (it was late)" in " ".join(errors.split())


def test_treatments_are_shown_against_the_first_with_n(perflab: Tell, tmp_path: Path) -> None:
    words = "a=wrk-1.txt a=wrk-2.txt b=wrk-3.txt b=wrk-4.txt"
    perflab(tmp_path, "import", *words.split())
    output, _ = perflab(tmp_path, "show", COLUMNS="300")
    assert "not judged" in output
    assert "all trials: wrk has no planned instants" in output
    assert "b / a" in output
    assert "2, 2" in output
    assert "nothing pairs these loads" in output
    assert "a | b" in perflab(tmp_path, "runs", COLUMNS="300")[0]
    (run,) = json.loads(perflab(tmp_path, "runs", "--json")[0])
    assert run["trials"] == {"valid": 0, "invalid": 0, "failed": 0, "not judged": 4}


def test_a_named_tool_overrules_the_guess(perflab: Tell, tmp_path: Path) -> None:
    both = tmp_path / "both.txt"
    both.write_text(f"{Path('ab-1.txt').read_text()}{Path('wrk-1.txt').read_text()}")
    _, errors = perflab(tmp_path, "import", str(both), code=1)
    assert "holds results of wrk and ab; name one, like --tool" in errors
    output, _ = perflab(tmp_path, "import", "--tool", "ab", str(both))
    assert "ab, text" in output
    assert "5.00% failed" in output
    _, errors = perflab(tmp_path, "import", "--tool", "oha", str(both), code=1)
    assert "it is no JSON" in errors
    _, errors = perflab(tmp_path, "import", "--tool", "hey", str(both), code=2)
    assert "none of k6, locust, oha, wrk, ab" in errors
