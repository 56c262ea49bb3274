"""A duel's output begins with the answer, in words no stronger than what was decided."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from perflab import api, systems
from perflab.analysis import noise
from perflab.analysis.between_runs import _row, judged_table
from perflab.analysis.decision import decide
from perflab.analysis.doubts.answer_classes import Answers, class_of
from perflab.analysis.doubts.unseen_answers import CHECK, CLASS_COLUMNS, LOAD, TABLE, answer_rows
from perflab.analysis.effect_words import effect_text
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.findings import sentence
from perflab.analysis.gates.thresholds import judged, thresholds_of
from perflab.analysis.typical_values import typical_value
from perflab.analysis.validity import TOO_FEW, why_unmeasured
from perflab.analysis.verdict import compared, without_effect
from perflab.cli import app
from perflab.cli.outputs import print_shown
from perflab.figures.plots import effect_rows
from perflab.figures.plots.effects import effect_row
from perflab.recordings import Contrast, Reason, Run
from perflab.recordings.responses import FAILURES, TOO_MANY_FAILED, named, resolution_column
from perflab.reports import section
from perflab.reports.duel_answer import answer
from perflab.reports.duel_notes import notes
from perflab.reports.duel_pairs import pairs_of
from perflab.reports.duels import beside_the_answer, other_answers, variant_sentences
from perflab.reports.failures import caveats
from perflab.reports.findings import sentences
from perflab.reports.section import page_table, page_text
from perflab.reports.verdicts import comparison_text, shown_findings
from perflab.statistics.block_ends import Ends
from perflab.statistics.comparison import Effect, bounded, effect_of
from perflab.statistics.shares import difference_of_shares
from perflab.systems.custom.responses import RESPONSES
from tests.golden.recordings import CASES, Case, write_recording
from tests.support.synthetic import Planted, contrast_of, write_run

CPU = "service_cpu_us_per_request"
# Eight blocks around 1: with little noise, and with much.
CALM = 1 + np.array([-4, -3, -2, -1, 1, 2, 3, 4]) / 1000
NOISY = 1 + np.array([-30, -20, -15, -5, 5, 15, 20, 30]) / 100


def finding(response: str, effect: Effect | None, scale: str = "ratio") -> Finding:
    contrast = Contrast.model_validate(
        {
            "name": f"new against old: {response}", "claim": response, "response": response,
            "scale": scale, "numerator": {"variant": "new"}, "denominator": {"variant": "old"},
        }
    )  # fmt: skip
    decision = None
    if effect is not None and scale == "ratio" and effect.n > 2:
        decision = decide(effect)
    declared = named(RESPONSES, response)
    assert declared is not None
    p = effect.p_value if effect else np.nan
    verdict = without_effect(contrast, "no block has both sides")
    if effect is not None:
        verdict = compared(effect, contrast, declared, decision, p)
    return Finding(contrast, declared, effect, verdict, decision, p_adjusted=p)


def ratio(values: np.ndarray) -> Effect:
    return effect_of(pd.Series(np.log(values)))


def at_least(values: np.ndarray) -> Effect:
    logs = pd.Series(np.log(values))
    return bounded(Ends(logs, logs + np.inf))


def answered(findings: list[Finding], *limits: str) -> str:
    thresholds = thresholds_of(limits)
    (pair,) = pairs_of(findings, thresholds, judged(thresholds, findings))
    return answer(pair)


@pytest.mark.parametrize(
    ("time", "cpu", "expected"),
    [
        (
            ratio(1.09 * CALM), ratio(1.1 * CALM),
            "new is 9.0% slower [8.7, 9.3] and uses 10% more CPU [9.7, 10]",
        ),
        (
            ratio(0.8 * CALM), ratio(0.9 * CALM),
            "new answers in 20% less time [20, 20] and uses 10% less CPU [9.7, 10]",
        ),
        (
            ratio(3 * CALM), ratio(2.2 * CALM),
            "new is 3.00 times as slow [2.99, 3.01] and uses 2.20 times as much CPU [2.19, 2.21]",
        ),
        (
            ratio(0.25 * CALM), ratio(1.1 * CALM),
            "new is 4.00 times as fast [3.99, 4.01] and uses 10% more CPU [9.7, 10]",
        ),
        (ratio(CALM), ratio(CALM), "no difference larger than 3% in mean response time or CPU"),
        (
            ratio(NOISY), ratio(1.1 * CALM),
            "new uses 10% more CPU [9.7, 10]; "
            "not decided: mean response time -1.6% [-20, 20]",
        ),
        (
            ratio(NOISY), ratio(CALM),
            "not decided: mean response time -1.6% [-20, 20]; "
            "no difference larger than 3% in CPU",
        ),
        (
            at_least(2.4 * CALM), ratio(CALM),
            "new is at least 2.39 times as slow; no difference larger than 3% in CPU",
        ),
        (
            at_least(0.9 * CALM), None,
            "not decided: mean response time >= 0.897; not compared: CPU",
        ),
        (
            ratio(np.array([1.5, 1.6])), None,
            "not decided: mean response time +55% [2.8, 133] in 2 blocks; not compared: CPU",
        ),
    ],
)  # fmt: skip
def test_the_answer_says_how_much_or_that_it_is_not_decided(
    time: Effect | None, cpu: Effect | None, expected: str
) -> None:
    assert answered([finding("mean_ms", time), finding(CPU, cpu)]) == expected


@pytest.mark.parametrize(
    ("limits", "end"),
    [
        (["mean>1.05"], "[8.7, 9.3]; gate: FAILED mean>1.05"),
        (["mean>1.05", "cpu>1.05"], "; gate: FAILED mean>1.05; not judged cpu>1.05"),
        (["mean>1.09"], ": not decided mean>1.09"),
        (["mean>1.2"], "; gate: passed"),
        ([], "[8.7, 9.3]"),
    ],
)
def test_the_answer_ends_with_the_thresholds_that_were_not_held(
    limits: list[str], end: str
) -> None:
    assert answered([finding("mean_ms", ratio(1.09 * CALM))], *limits).endswith(end)


def test_what_differs_beside_the_mean_is_told_too() -> None:
    of_p99 = finding("p99_ms", ratio(1.3 * CALM))
    shares = effect_of(pd.Series(0.02 * CALM), scale="difference")
    failures = finding("failure_share", shares, "difference")
    assert answered([finding("mean_ms", ratio(CALM)), of_p99, failures]) == (
        "new is 30% slower at p99 [30, 30] and has 2.00 percentage points more failures "
        "[1.99, 2.01]; no difference larger than 3% in mean response time"
    )
    assert "p99" not in answered([finding("mean_ms", ratio(1.3 * CALM)), of_p99])


def test_the_answer_names_the_request_that_differs_and_its_gate() -> None:
    means = {"mean_ms": 1.03, "of_list_mean_ms": 1.0, "of_create_mean_ms": 1.34}
    findings = [finding(name, ratio(factor * CALM)) for name, factor in means.items()]
    findings.append(finding("of_create_p99_ms", ratio(1.4 * CALM)))
    line = answered(findings, "create:mean>1.1", "list:mean>1.1")
    assert "is 34% slower in create [34, 34]" in line
    assert "in list" not in line
    assert "at p99" not in line, "the mean says it already"
    assert "FAILED create:mean>1.1" in line


def of_shares(new: list[int], old: list[int], requests: int = 2_000) -> Effect:
    tables = [pd.DataFrame({"failed": failed, "requests": requests}) for failed in (new, old)]
    return difference_of_shares(*tables)


@pytest.mark.parametrize(
    ("new", "old", "words"),
    [
        ([0] * 8, [0] * 8, "same (no failures on either side)"),
        # 10 and 10 of 16,000 are not known to be within 0.1 points by much, 40 more are not.
        ([1, 2, 1, 1, 2, 1, 1, 1], [2, 1, 1, 1, 1, 2, 1, 1], "same (within 0.1 points)"),
        ([1, 0] * 4, [9, 0] * 4, "not decided"),
        ([8, 9, 7, 8, 9, 10, 8, 9], [0] * 8, "worse"),
    ],
)
def test_failures_of_both_sides_are_told_with_a_margin_of_a_tenth_of_a_point(
    new: list[int], old: list[int], words: str
) -> None:
    assert str(finding("failure_share", of_shares(new, old), "difference").verdict) == words


def test_a_note_says_of_how_many_requests_how_many_failed_and_how_many_may() -> None:
    found = finding("failure_share", of_shares([0] * 8, [1, *[0] * 7]), "difference")
    assert list(caveats(found, {})) == [
        "0 of 16,000 requests of new failed (up to 0.0231% may), 1 of 16,000 requests of old "
        "failed (up to 0.0349% may); exact 95% intervals, as if failures were independent"
    ]
    (text,) = caveats(finding("failure_share", of_shares([2000] * 8, [0] * 8), "difference"), {})
    assert text.startswith("16,000 of 16,000 requests of new failed (at least 99.9% do), 0 of")


def test_a_difference_of_failures_is_in_points_wherever_it_stands() -> None:
    found = finding("failure_share", of_shares([8] * 8, [0] * 8), "difference")
    assert effect_text(found).startswith("+0.400 points [0.3")
    assert f"failed {effect_text(found)} (95% interval" in sentence(found)
    row = effect_row(found)
    assert (row["unit"], row["measured"]) == ("points", pytest.approx(0.4))
    assert row["of_blocks"] == " ".join(["0.4"] * 8)
    trials = pd.DataFrame({"failure_share": [0.0, 0.01, 0.02, 0.01], "state": "valid"})
    compared_trials = _row("new", named(RESPONSES, FAILURES), [trials], [trials])
    text = comparison_text(judged_table([compared_trials], lambda _: ""))
    assert "B - A: 0 points [-2.00, 2.00] (no ratio" in text["B / A [95%]"][0]


def test_the_axis_of_an_effect_shows_an_interval_whose_blocks_are_all_alike() -> None:
    assert effect_rows.limits([0.0, 0.0], [-0.05, 0.05], 0.0) == pytest.approx((-0.056, 0.056))


def test_a_duel_whose_trials_are_all_refused_answers_nothing() -> None:
    refused = [finding("mean_ms", None), finding(CPU, None)]
    assert answered(refused, "p50>1.05").startswith("new could not be compared: ")
    assert answered(refused, "p50>1.05").endswith("; gate: not judged p50>1.05")


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
    monkeypatch.setattr(section, "write_report", lambda *_: [tmp_path / "figures" / "effect.svg"])
    words = [*DUEL, *limits[:-1], "--fail-on", limits[-1]]
    monkeypatch.setattr("sys.argv", ["perflab", *words])
    done = CliRunner().invoke(app, words)
    lines = done.stdout.splitlines()
    assert (done.exit_code, len(lines) <= 25) == (status, True), done.output
    assert lines[0].startswith("new is 35% slower [")
    assert lines[0].endswith(f": {end}")
    assert lines[2].split() == ["response", "old", "new", "ratio", "[95%]", "n", "verdict"]
    assert done.stdout.count("cpu, us/request") == 1
    assert "20 of 22 trials count" in done.stdout
    assert "2 do not: " in done.stdout
    assert "so a ratio need not be that of the two values" in " ".join(done.stdout.split())
    offered = "   (with --why: what makes the difference)"
    assert lines[-2] == f"figures and section: {tmp_path / 'figures'}/{offered}"
    assert lines[-1] == f"repeat: {shlex.join(['perflab', *words])}"
    assert "published" not in done.stdout


def test_a_duel_beside_much_other_work_says_so_below_its_answer(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noise, "share_of_others", lambda _: 0.6)
    monkeypatch.setattr(api, "run", lambda *_: duel_of_two)
    monkeypatch.setattr(section, "write_report", lambda *_: [Path("figures/effect.svg")])
    lines = CliRunner().invoke(app, DUEL).stdout.splitlines()
    assert lines[0].startswith("new is 35% slower [")
    assert lines[1].startswith("DOUBTFUL: others used 60% of the cores meanwhile")
    for words in (["show"], ["show", "--full"]):
        shown = CliRunner().invoke(app, [*words, str(duel_of_two.path)]).stdout
        assert "Doubtful: others used 60% of the cores meanwhile" in shown


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
    monkeypatch.setattr(section, "write_report", lambda *_: [Path("figures/effect.svg")])
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
    assert variant_sentences(duel_of_two, evaluate(duel_of_two))[0].startswith(
        told if expected else "new is 35% slower"
    )


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
    ("column", "counts", "expected"),
    [
        ("p99_ms", {"requests": 62}, "62 of the 368 requests it needs: --duration 14"),
        ("p99_ms", {"requests": 0}, TOO_FEW),
        ("p99_ms", {"requests": 400}, TOO_FEW),
        ("of_create_p99_ms", {"requests": 400, "of_create_failure_share_resolution": 1 / 184},
         "184 of the 368 requests it needs: --duration 5"),
        ("mean_ms", {"requests": 62}, TOO_FEW),
    ],
)  # fmt: skip
def test_a_percentile_of_too_few_requests_is_told_with_the_duration_that_it_needs(
    column: str, counts: dict[str, float], expected: str
) -> None:
    declared = named(systems.experiment("custom_service").responses, column)
    assert declared is not None
    trials = pd.DataFrame([{column: np.nan, "warnings": [], **counts}] * 2)
    told = why_unmeasured(trials, declared, duration_s=2.0)
    assert told == f"no {declared.title} from 2 of 2 valid trials: {expected}"


def test_the_notes_of_a_duel_say_how_long_trials_must_be_for_a_percentile(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = duel_of_two.trials().assign(p99_ms=np.nan, requests=62)
    monkeypatch.setattr(type(duel_of_two), "trials", lambda _: trials)
    duel_of_two.record.parameters["duration_s"] = 2.0
    (note,) = (each for each in notes(duel_of_two, pairs_of(evaluate(duel_of_two), (), ()))
               if "no p99 of the response time" in each)  # fmt: skip
    assert note.endswith("62 of the 368 requests it needs: --duration 14")


@pytest.mark.parametrize("side", ["old", "new"])
def test_a_duel_compares_nothing_where_answers_under_load_are_like_none_that_was_checked(
    duel_of_two: Run, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    right = class_of(200, "application/json", b'{"result": [1]}', 15)
    error = class_of(200, "application/json", b'{"error": "busy"}', 17)
    tables = []
    for row in duel_of_two.current_trials().itertuples():
        bad = 98.0 if row.factor_variant == side else 0.5
        loaded = [Answers(error, bad, '{"error": "busy"}'), Answers(right, 100 - bad)]
        rows = [answer_rows(CHECK, {"": [Answers(right, 20)]}), answer_rows(LOAD, {"": loaded})]
        tables.append(pd.concat(rows).assign(trial_id=row.trial_id, treatment=row.treatment))
    record = duel_of_two.record.model_copy(update={"tables": {TABLE: dict(CLASS_COLUMNS)}})
    run = Run(duel_of_two.path)
    monkeypatch.setattr(run, "record", record)
    real = Run.table

    def table(run: Run, name: str, ids: list[str] | None = None) -> pd.DataFrame:
        return pd.concat(tables) if name == TABLE else real(run, name, ids)

    monkeypatch.setattr(Run, "table", table)
    monkeypatch.setattr(api, "run", lambda *_: run)
    monkeypatch.setattr(section, "write_report", lambda *_: [Path("figures/effect.svg")])
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


@pytest.mark.parametrize(("blocks", "told"), [(2, False), (3, True), (5, True), (6, False)])
def test_a_duel_of_three_to_five_blocks_says_that_it_rests_on_normal_noise(
    duel_of_two: Run, blocks: int, told: bool
) -> None:
    found = [finding("mean_ms", ratio(1.09 * CALM[:blocks]))]
    found[0] = replace(found[0], blocks=tuple(range(11)))
    lines = notes(duel_of_two, pairs_of(found, (), ()))
    assert any("hold only if the noise is normal" in line for line in lines) == told


def test_no_failure_in_some_requests_leaves_room_for_failures_in_others() -> None:
    counted = {"failure_share": [0.0] * 4, resolution_column("failure_share"): [1 / 2_000] * 4}
    typical = typical_value(pd.DataFrame(counted), "failure_share")
    assert (typical.value, typical.low) == (0.0, 0.0)
    assert typical.high == pytest.approx(3.69 / 8_000, rel=0.01)


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
