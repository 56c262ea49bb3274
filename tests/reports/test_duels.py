"""A duel's output begins with the answer; one table and each limit once follow."""

from __future__ import annotations

import errno
import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from perflab import api, systems
from perflab.analysis import noise
from perflab.analysis.doubts.answer_classes import AnswerClass, Answers, class_of
from perflab.analysis.doubts.unseen_answers import CHECK, CLASS_COLUMNS, LOAD, TABLE, answer_rows
from perflab.analysis.evaluation import evaluate
from perflab.analysis.typical_values import typical_value
from perflab.analysis.validity import TOO_FEW, Short, short_of_requests, why_unmeasured
from perflab.cli import app
from perflab.cli.actions import duel_result
from perflab.cli.outputs import print_shown
from perflab.errors import ExportRefused, ParameterError
from perflab.recordings import Reason, Remark, Run
from perflab.recordings.responses import (
    FAILURES,
    SHARED_STORE,
    TOO_MANY_FAILED,
    named,
    resolution_column,
)
from perflab.reports import duel_summary
from perflab.reports.duel_notes import notes
from perflab.reports.duel_pairs import pairs_of
from perflab.reports.duel_table import result_table
from perflab.reports.duels import beside_the_answer, other_answers, variant_sentences
from perflab.reports.findings import sentences
from perflab.reports.methods import method
from perflab.reports.section import page_table, page_text
from perflab.reports.verdicts import shown_answers, shown_findings
from tests.golden.recordings import CASES, Case, write_recording
from tests.reports.test_duel_answer import CALM, CPU, at_least, finding, ratio
from tests.support.planted_trial import Planted
from tests.support.synthetic import contrast_of, write_run

VARIANTS = tuple(f"{name}=command:python3 server.py --port {{port}}" for name in ("old", "new"))
DUEL = ["duel", *(word for variant in VARIANTS for word in ("--variant", variant))]
TWO = Case("custom_service", parameters={"variants": VARIANTS, "design": "trials"}, more_blocks=4)


@pytest.fixture
def duel_of_two(tmp_path: Path) -> Run:
    """A recorded duel with a third more of everything, a refused trial and a failed one."""
    with patch.dict(CASES, {"two": TWO}):
        return write_recording(tmp_path, "two/claimed")


@pytest.mark.parametrize(
    ("limits", "status", "end"),
    [
        (["cpu>1.1"], 3, "FAILED cpu>1.1"),
        (["cpu>1.5"], 0, "passed"),
        (["--strict", "cpu>1.35"], 5, "not decided cpu>1.35"),
    ],
)
def test_a_duel_prints_the_answer_one_table_and_each_limit_once(
    duel_of_two: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    limits: list[str],
    status: int,
    end: str,
) -> None:
    monkeypatch.setattr(api, "run", lambda *_: duel_of_two)
    monkeypatch.setattr(
        duel_result, "write_report", lambda *_: [tmp_path / "figures" / "effect.svg"]
    )
    words = [*DUEL, *limits[:-1], "--fail-on", limits[-1]]
    monkeypatch.setattr("sys.argv", ["perflab", *words])
    done = CliRunner().invoke(app, words)
    lines = done.stdout.splitlines()
    assert (done.exit_code, len(lines) <= 26) == (status, True), done.output
    assert lines[0].startswith("new is 35% slower [")
    assert lines[0].endswith(f": {end}")
    assert lines[2].split() == ["response", "old", "new", "ratio", "[95%]", "n", "verdict"]
    assert done.stdout.count("cpu, us/request") == 1
    assert "20 of 22 trials count" in done.stdout
    assert "2 do not: " in done.stdout
    assert "so a ratio need not be that of the two values" in " ".join(done.stdout.split())
    assert lines[-3] == f"figures and section: {tmp_path / 'figures'}/"
    why = f"perflab duel --resume {duel_of_two.run_id} --why"
    assert lines[-2] == f"what makes the difference: {why}"
    assert lines[-1] == f"repeat: {shlex.join(['perflab', *words])}"
    assert "published" not in done.stdout


def test_a_duel_beside_much_other_work_says_so_below_its_answer(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noise, "share_of_others", lambda _: 0.6)
    monkeypatch.setattr(api, "run", lambda *_: duel_of_two)
    monkeypatch.setattr(duel_result, "write_report", lambda *_: [Path("figures/effect.svg")])
    lines = CliRunner().invoke(app, DUEL).stdout.splitlines()
    assert lines[0].startswith("new is 35% slower [")
    assert lines[1].startswith("DOUBTFUL: others used 60% of the cores meanwhile")
    for words in (["show"], ["show", "--full"]):
        shown = CliRunner().invoke(app, [*words, str(duel_of_two.path)]).stdout
        assert "Doubtful: others used 60% of the cores meanwhile" in shown


def test_summaries_are_written_into_folders_that_were_not_there(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(api, "run", lambda *_: duel_of_two)
    monkeypatch.setattr(duel_result, "write_report", lambda *_: [Path("figures/effect.svg")])
    summary, of_job = tmp_path / "out" / "deep" / "answer.md", tmp_path / "job" / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(of_job))
    done = CliRunner().invoke(app, [*DUEL, "--summary", str(summary)])
    assert done.exit_code == 0, done.output
    assert summary.read_text().startswith("### new is 35% slower [")
    assert of_job.read_text() == summary.read_text()


@pytest.mark.parametrize("place", ["a_folder", "a_file/answer.md"])
@pytest.mark.parametrize("named", ["--summary", "GITHUB_STEP_SUMMARY"])
def test_a_summary_that_cannot_be_written_is_refused_before_anything_is_measured(
    place: str, named: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a_folder").mkdir()
    (tmp_path / "a_file").touch()
    monkeypatch.setattr(api, "run", lambda *_: pytest.fail("it was measured"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    words = list(DUEL)
    if named == "--summary":
        words += [named, str(tmp_path / place)]
    else:
        monkeypatch.setenv(named, str(tmp_path / place))
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, ParameterError)
    assert f"{named}: " in str(error)
    assert str(tmp_path / place) in str(error)


@pytest.mark.promise
def test_the_answer_is_printed_even_if_its_summary_cannot_be_written_any_more(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(api, "run", lambda *_: duel_of_two)
    monkeypatch.setattr(duel_result, "write_report", lambda *_: [Path("figures/effect.svg")])
    monkeypatch.setattr(duel_result, "replace_file", full)
    done = CliRunner().invoke(app, [*DUEL, "--summary", str(tmp_path / "answer.md")])
    assert done.stdout.startswith("new is 35% slower [")
    assert isinstance(done.exception, ExportRefused)
    assert f"perflab show {duel_of_two.run_id}" in str(done.exception)


SAID = "<h1>FileNotFoundError: /home/someone/shop/items.json</h1> @team"


@pytest.mark.promise
def test_what_a_service_answers_is_no_markup_in_a_summary_and_has_no_path(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    remarks = [Remark(code=code, text=SAID) for code in (SHARED_STORE, "planted.remark")]
    record = duel_of_two.record.model_copy(update={"warnings": remarks})
    monkeypatch.setattr(duel_of_two, "record", record)
    monkeypatch.setattr(duel_summary, "above_the_answer", lambda _: [SAID])
    monkeypatch.setattr(duel_summary, "why_data", lambda *_: {"causes": [{"text": SAID}]})
    monkeypatch.setattr(duel_summary, "MOST_LINES", 100)
    pairs = pairs_of(evaluate(duel_of_two), (), ())
    lines = duel_summary.as_markdown(duel_of_two, pairs).splitlines()
    escaped = r"\<h1>FileNotFoundError: items.json\</h1> `@team`"
    assert lines[0] == f"### {escaped}"
    assert {escaped, f"- note: {escaped}"} <= {*lines}
    assert "<h1>" not in "\n".join(lines).replace(r"\<h1>", "")
    data = duel_summary.as_data(duel_of_two, pairs)
    without_path = "<h1>FileNotFoundError: items.json</h1> @team"
    assert data["before"] == [without_path]
    assert without_path in data["answers"]
    assert f"note: {without_path}" in data["notes"]
    assert data["why"]["new"]["causes"] == [{"text": without_path}]
    assert "/home" not in json.dumps(data)


def test_the_method_of_a_duel_names_its_own_correction(duel_of_two: Run) -> None:
    told = method(duel_of_two)
    assert "Holm" in told
    assert "about one response" not in told


@pytest.mark.promise
def test_the_answer_as_json_has_no_number_that_json_lacks(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(duel_result, "write_report", lambda *_: [Path("figures/effect.svg")])
    found = [finding("mean_ms", at_least(2.4 * CALM))]
    duel_result.print_json(duel_result.DuelResult(duel_of_two, found, pairs_of(found, (), ())))
    (row,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["rows"]
    assert row["low"] == pytest.approx(2.39, rel=0.01)
    assert (row["estimate"], row["high"]) == (None, None)


def test_a_duel_that_failed_before_its_first_trial_says_once_that_nothing_was_compared(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = duel_of_two.trials().head(0).drop(columns=[CPU, "service_memory_bytes"])
    monkeypatch.setattr(Run, "trials", lambda _: trials)
    shown = CliRunner().invoke(app, ["show", str(duel_of_two.path)]).stdout
    assert shown.count("there is nothing to compare") == 1
    assert "column" not in shown


@pytest.mark.parametrize(("codes", "status"), [((), 3), (("generator.late",), 4)])
def test_a_service_that_fails_more_often_than_the_baseline_crosses_the_limit_of_failures(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch, codes: tuple[str, ...], status: int
) -> None:
    """Its trials are invalid for their failures; any other reason leaves nothing to compare."""
    trials = duel_of_two.trials()
    is_new = trials["factor_variant"] == "new"
    trials[FAILURES] = np.where(is_new, 0.03, 0.0)
    reasons = [Reason(code=code, text=code) for code in (TOO_MANY_FAILED, *codes)]
    for row in trials.index[is_new]:
        trials.at[row, "state"], trials.at[row, "reasons"] = "invalid", reasons
    monkeypatch.setattr(type(duel_of_two), "trials", lambda _: trials)
    monkeypatch.setattr(api, "run", lambda *_: Run(duel_of_two.path))
    monkeypatch.setattr(duel_result, "write_report", lambda *_: [Path("figures/effect.svg")])
    done = CliRunner().invoke(app, [*DUEL, "--fail-on", "failures>0.01"])
    assert done.exit_code == status, done.output
    told = done.stdout.startswith("new has 3.00 percentage points more failures [3.00, 3.00]")
    assert told == (status == 3)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (["aa"], ["aa"], ""),
        (["aa"], ["ab"], "bodies of 2 bytes that differ"),
        # Each body holds the time.
        (["a1", "a2"], ["a3", "a4"], ""),
        (["a1", "a22"], ["a333", "a4444"], "bodies of 4 to 5 and 2 to 3 bytes"),
        ([], ["aa"], ""),
    ],
)
def test_a_duel_says_first_that_its_variants_give_different_answers(
    duel_of_two: Run,
    monkeypatch: pytest.MonkeyPatch,
    old: list[str],
    new: list[str],
    expected: str,
) -> None:
    trials = duel_of_two.trials()
    for name, bodies in (("old", old), ("new", new)):
        rows = trials.index[trials["factor_variant"] == name]
        for number, row in enumerate(rows if bodies else ()):
            body = bodies[number % len(bodies)]
            trials.loc[row, ["answer_bytes", "answer_digest"]] = len(body), body
    monkeypatch.setattr(type(duel_of_two), "trials", lambda _: trials)
    told = f"new and old give different answers: {expected}. They may not do the same work."
    assert other_answers(duel_of_two) == ([told] if expected else [])
    findings = evaluate(duel_of_two)
    assert variant_sentences(duel_of_two, findings)[0].startswith(
        told if expected else "new is 35% slower"
    )
    page, notes = page_text(duel_of_two, findings), shown_answers(duel_of_two, findings).notes
    assert ((told in page), (told in notes)) == (bool(expected), bool(expected))
    full = CliRunner().invoke(app, ["show", "--full", str(duel_of_two.path)]).stdout
    assert ("They may not do the same work" in " ".join(full.split())) == bool(expected)


@pytest.mark.promise
@pytest.mark.parametrize(
    ("rows", "script", "expected"),
    [
        ((1_000, 1_005), "", ""),
        ((1_350, 1_000), "", "the faster side measures a fuller store; --rate {} gives both"),
        ((1_350, 1_000), "shop.py:Shopper",
         "the faster side measures a fuller store; pacing_s in the script gives both"),
        ((1_000, 1_350), "", "the stores differ in rows; --rate {} gives both"),
    ],
)  # fmt: skip
def test_where_one_side_fills_its_store_more_that_stands_beside_the_answer(
    duel_of_two: Run,
    monkeypatch: pytest.MonkeyPatch,
    rows: tuple[int, int],
    script: str,
    expected: str,
) -> None:
    trials = duel_of_two.valid_trials()
    is_old = trials["factor_variant"] == "old"
    trials["store_rows"] = np.where(is_old, rows[0], rows[1]).astype(float)
    monkeypatch.setattr(type(duel_of_two), "valid_trials", lambda _: trials)
    pairs = pairs_of(evaluate(duel_of_two), (), ())
    duel_of_two.record.parameters["script"] = script
    slower_rps = trials.groupby("treatment")["throughput_rps"].median().min()
    rate = f"{float(f'{0.8 * slower_rps:.2g}'):g}"
    told = (
        f"rows in the store at the end of a trial: {rows[1]:,} of new, {rows[0]:,} of old: the "
        f"load writes, and {expected.format(rate)} equal work"
    )
    assert beside_the_answer(duel_of_two, pairs) == ([told] if expected else [])
    assert (told in variant_sentences(duel_of_two, evaluate(duel_of_two))) == bool(expected)


@pytest.mark.parametrize(
    ("column", "counts", "short"),
    [
        ("p99_ms", {"requests": 62}, Short(62, 368, 14)),
        ("p99_ms", {"requests": 0}, None),
        ("p99_ms", {"requests": 400}, None),
        ("of_create_p99_ms", {"requests": 400, "of_create_failure_share_resolution": 1 / 184},
         Short(184, 368, 5)),
        ("mean_ms", {"requests": 62}, None),
    ],
)  # fmt: skip
def test_a_percentile_of_too_few_requests_is_told_with_the_duration_that_it_needs(
    column: str, counts: dict[str, float], short: Short | None
) -> None:
    declared = named(systems.experiment("custom_service").responses, column)
    assert declared is not None
    trials = pd.DataFrame([{column: np.nan, "warnings": [], **counts}] * 2)
    assert short_of_requests(trials, declared, duration_s=2.0) == short
    why = f"{short.fewest} of the 368 requests it needs" if short else TOO_FEW
    told = why_unmeasured(trials, declared)
    assert told == f"no {declared.title} from 2 of 2 valid trials: {why}"


def test_the_notes_of_a_duel_say_once_how_long_trials_must_be_for_percentiles(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = duel_of_two.trials().assign(p50_ms=np.nan, p99_ms=np.nan, requests=2)
    monkeypatch.setattr(type(duel_of_two), "trials", lambda _: trials)
    duel_of_two.record.parameters["duration_s"] = 2.0
    lines = notes(duel_of_two, pairs_of(evaluate(duel_of_two), (), ()))
    assert [line for line in lines if "p99" in line or "p50" in line] == [
        "a trial has too few requests for percentiles (2 of the 6 for p50; 2 of the 368 for p99): "
        "--duration 405"
    ]


RIGHT = class_of(200, "application/json", b'{"result": [1]}', 15)
ERROR = class_of(200, "application/json", b'{"error": "busy"}', 17)


def with_answers(
    duel: Run, monkeypatch: pytest.MonkeyPatch, failed: Mapping[str, float], checked: AnswerClass
) -> Run:
    """Return a duel of which so many percent of a side's answers under load are errors."""
    tables = []
    for row in duel.current_trials().itertuples():
        bad = failed[row.factor_variant]
        loaded = [Answers(ERROR, bad, '{"error": "busy"}'), Answers(RIGHT, 100 - bad)]
        rows = [answer_rows(CHECK, {"": [Answers(checked, 20)]}), answer_rows(LOAD, {"": loaded})]
        tables.append(pd.concat(rows).assign(trial_id=row.trial_id, treatment=row.treatment))
    record = duel.record.model_copy(update={"tables": {TABLE: dict(CLASS_COLUMNS)}})
    run = Run(duel.path)
    monkeypatch.setattr(run, "record", record)
    real = Run.table

    def table(run: Run, name: str, ids: list[str] | None = None) -> pd.DataFrame:
        return pd.concat(tables) if name == TABLE else real(run, name, ids)

    monkeypatch.setattr(Run, "table", table)
    return run


@pytest.mark.promise
@pytest.mark.parametrize(("old", "told"), [(100.0, True), (51.0, True), (49.0, False)])
def test_variants_that_all_fail_are_told_to_be_compared_in_how_fast_they_fail(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch, old: float, told: bool
) -> None:
    run = with_answers(duel_of_two, monkeypatch, {"old": old, "new": 100.0}, ERROR)
    says = [text for text in other_answers(run) if "how fast they fail" in text]
    assert bool(says) == told
    if told:
        assert says[0].startswith("most answers of every variant have a text in error, such as '{")


@pytest.mark.parametrize("side", ["old", "new"])
def test_a_duel_compares_nothing_where_answers_under_load_are_like_none_that_was_checked(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    failed = {"old": 0.5, "new": 0.5, side: 98.0}
    run = with_answers(duel_of_two, monkeypatch, failed, RIGHT)
    monkeypatch.setattr(api, "run", lambda *_: run)
    monkeypatch.setattr(duel_result, "write_report", lambda *_: [Path("figures/effect.svg")])
    for limits in ([], ["--fail-on", "p99>1.05"]):
        done = CliRunner().invoke(app, [*DUEL, *limits])
        assert done.exit_code == 4, done.output
        first = done.stdout.partition("\n")[0]
        assert first.startswith(f"98% of {side}'s answers under load have the key error, such as")
        assert "--expect-body" in first
        assert not [word for word in ("faster", "slower", "passed") if word in done.stdout]
    told = variant_sentences(run, evaluate(run))
    assert told[0].startswith(f"98% of {side}'s answers under load")
    assert "slower" not in " ".join([*told, page_text(run, evaluate(run))])


def test_no_failure_in_some_requests_leaves_room_for_failures_in_others() -> None:
    counted = {"failure_share": [0.0] * 4, resolution_column("failure_share"): [1 / 2_000] * 4}
    typical = typical_value(pd.DataFrame(counted), "failure_share")
    assert (typical.value, typical.low) == (0.0, 0.0)
    assert typical.high == pytest.approx(3.69 / 8_000, rel=0.01)


def test_a_variant_may_have_the_name_of_a_column_of_the_table(duel_of_two: Run) -> None:
    (pair,) = pairs_of(evaluate(duel_of_two), (), ())
    usual = result_table(duel_of_two, [pair])
    table = result_table(duel_of_two, [replace(pair, new="n", old="verdict")])
    assert [*table.columns] == ["response", "verdict", "n", "ratio [95%]", "n", "verdict"]
    assert table.to_numpy().tolist() == usual.to_numpy().tolist()


@pytest.mark.promise
@pytest.mark.parametrize("blocks", [3, 8])
def test_a_share_of_failures_is_that_of_all_requests_and_lies_in_its_interval(blocks: int) -> None:
    shares = [0.0] * (blocks - 1) + [0.02]
    counted = {"failure_share": shares, resolution_column("failure_share"): [1 / 500] * blocks}
    typical = typical_value(pd.DataFrame(counted), "failure_share")
    assert typical.value == pytest.approx(0.02 / blocks)
    assert typical.low < typical.value < typical.high


def test_a_page_has_every_response_of_a_claim(duel_of_two: Run) -> None:
    assert "failures %" in page_table(duel_of_two)


def test_the_heading_of_a_duels_section_is_its_answer(duel_of_two: Run) -> None:
    assert page_text(duel_of_two, evaluate(duel_of_two)).startswith("# new is 35% slower [")


def test_where_nothing_is_published_the_table_of_a_run_names_no_published_number(
    duel_of_two: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    print_shown(shown_findings(duel_of_two, evaluate(duel_of_two)))
    shown = capsys.readouterr().out
    assert "valid trials" in shown
    assert "published" not in shown


@pytest.mark.parametrize("ratio", [1.0, 1.6])
def test_variants_with_a_published_claim_are_judged_by_it(tmp_path: Path, ratio: float) -> None:
    old, new = Planted({"variant": "old"}), Planted({"variant": "new"}, ratio)
    run = write_run(tmp_path, treatments=(old, new), contrasts=[contrast_of(new, old)])
    told = " ".join(sentences(run, evaluate(run)))
    assert "side by side" not in told
    assert "published" in told.lower()


@pytest.mark.parametrize(("blocks", "told"), [(2, False), (3, True), (5, True), (6, False)])
def test_a_duel_of_three_to_five_blocks_says_that_it_rests_on_normal_noise(
    duel_of_two: Run, blocks: int, told: bool
) -> None:
    found = [finding("mean_ms", ratio(1.09 * CALM[:blocks]))]
    found[0] = replace(found[0], blocks=tuple(range(11)))
    # A percentile that one block knows says nothing of the others.
    found.append(replace(finding("p99_ms", ratio(1.09 * CALM[:1])), blocks=(0,)))
    lines = notes(duel_of_two, pairs_of(found, (), ()))
    normal = [line for line in lines if "hold only if the noise is normal" in line]
    assert [line.partition(":")[0] for line in normal] == [f"{blocks} blocks"] * told
