"""The ledger: every row has an answer, and a verdict only on the same estimand."""

from __future__ import annotations

import re
import runpy

import pytest

from perflab import systems
from perflab.errors import ParameterError, RecordingError
from perflab.paths import notebooks_dir, project_root
from perflab.recordings import Contrast, Run, RunWriter, studies
from perflab.recordings.published_rows import Answered, Claim, Number
from perflab.reports.ledger import Entry, answering_runs, ledger, narrowed, shown_ledger
from perflab.reports.ledger.entries import check_view
from perflab.reports.ledger.rows import SIZES, mismatch, rows
from perflab.reports.ledger.shown import count_table, headline
from perflab.reports.rules import findings_of
from perflab.sweeps.cells import open_sweep
from perflab.trials.plan import RunPlan
from tests.reports.ledger.conftest import Bring, Write
from tests.support.planted_trial import Planted
from tests.support.synthetic import NO_WRITE
from tests.systems.planned import plan_of

EFFECT = "published effects / synchronous_commit off against on / throughput_change"


def entry(key: str = EFFECT) -> Entry:
    (match,) = [item for item in ledger("inference") if item.row.key == key]
    return match


def faults(study: str = "") -> list[str]:
    unanswered = [item for item in ledger(study) if item.outcome == "no answer"]
    return [f"{item.row.key}: {item.why}" for item in unanswered]


def test_every_answer_names_what_exists_and_no_row_lacks_one() -> None:
    assert faults() == []
    for row in (row for row in rows() if row.answered_by == Answered.VIEW):
        check_view(row.item, systems.experiment(row.experiment).system)


# Contrasts beyond the studies: farther from the database, with a pool that keeps one connection,
# and with the values of a message made or read.
BEYOND = (", 5 ms,", ", minconn 1", "_values", "flush, ", "flush of ")


def test_every_contrast_that_rests_on_a_study_answers_one_of_its_rows() -> None:
    answered = [row for row in rows() if row.answered_by == Answered.CONTRAST]
    for chosen in (item for item in systems.experiments() if item.system in studies()):
        for contrast in chosen.plan(chosen.check({})).contrasts:
            from_study = " study" in contrast.source and contrast.published_direction
            if from_study and not any(words in contrast.name for words in BEYOND):
                assert any(
                    row.experiment == chosen.name and row.covers(contrast.name) for row in answered
                ), contrast.name


def test_the_sweep_of_the_published_studies_measures_every_row_that_a_contrast_answers() -> None:
    sweep = open_sweep(notebooks_dir() / "sweeps" / "published.yaml")
    chosen = [(systems.experiment(cell.notebook), cell.parameters) for cell in sweep.cells]
    measured = [
        (asked.name, contrast)
        for asked, values in chosen
        for contrast in asked.plan(asked.check(values)).contrasts
    ]
    left_out = [
        row.key
        for row in rows()
        if row.answered_by == Answered.CONTRAST
        and not any(
            name == row.experiment and row.covers(contrast.name) and not mismatch(row, contrast)
            for name, contrast in measured
        )
    ]
    assert left_out == []


# ---- what a run says ----------------------------------------------------------------------------


@pytest.mark.usefixtures("write")
def test_without_a_run_a_row_says_what_to_type() -> None:
    assert entry().outcome == "not measured"
    assert (entry().command, entry().why) == ("perflab run synchronous_commit", "")
    claim = "published effects / effect no db"
    assert entry(claim).command == "perflab run inference_runtime -p preset=published"


def test_a_row_has_a_verdict_which_another_row_of_the_same_is_not_counted_as(write: Write) -> None:
    write("measured")
    result = entry()
    assert (result.outcome, result.run_id, result.n, result.judged) == (
        "as published", "measured", ("6",), True,
    )  # fmt: skip
    assert re.fullmatch(r"1\.6.*\]", result.measured[0])
    same = entry("published effects / effect off on")
    assert same.outcome == "same as another row"
    assert same.why == f"{EFFECT}: as published"
    assert not same.judged
    # The run's other five contrasts, of a treatment that it lacks, are not measured.
    assert "Verdicts are on 6 questions." in headline(ledger("inference"))


@pytest.mark.promise
def test_a_run_of_another_case_than_todays_says_so_and_answers(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a study turns out to have measured with another setting."""
    write("measured")
    assert "another case" not in entry().why
    as_it_is = answering_runs.planned_today

    def corrected(run: Run) -> RunPlan | None:
        plan = as_it_is(run)
        assert plan is not None
        treatments = tuple(
            plan.treatments[0].model_copy(
                update={"name": item.name, "levels": dict.fromkeys(item.levels, "remote")}
            )
            for item in run.record.treatments
        )
        return plan.model_copy(update={"treatments": treatments})

    monkeypatch.setattr(answering_runs, "planned_today", corrected)
    result = entry()
    assert result.outcome == "as published"
    case = "another case than the study's: synchronous_commit was off, the study's is remote"
    assert case in result.why


def test_a_claim_of_a_run_is_worded_as_today_unless_something_else_was_asked(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = project_root() / "scripts"
    monkeypatch.syspath_prepend(scripts)
    worded_today = runpy.run_path(str(scripts / "studies.py"))["worded_today"]
    first, *others = plan_of("synchronous_commit", seed=1).contrasts
    once = [each.model_copy(update={"claim": f"once {each.claim}"}) for each in (first, *others)]
    once[0] = once[0].model_copy(update={"published_ratio": 9.0})
    run = write("worded", contrasts=once)
    findings = worded_today(run, findings_of(run))
    words = {finding.contrast.name: finding.contrast.claim for finding in findings}
    assert words.pop(first.name) == f"once {first.claim}"
    today = {contrast.name: contrast.claim for contrast in others}
    assert words
    assert words == {name: today[name] for name in words}


@pytest.mark.promise
def test_a_claim_that_is_tested_on_deliveries_is_not_answered_by_pings() -> None:
    (row,) = (
        row for row in rows("chat") if row.key == "published results / json_login against json"
    )
    assert all(row.covers(f"json_login against json, p{share}") for share in (90, 95, 99))
    assert not row.covers("json_login against json, p90 of pings")


@pytest.mark.promise
def test_a_doubtful_run_answers_and_its_rows_say_so(write: Write) -> None:
    write("once", {"fresh_blocks": 0})
    result = entry()
    assert (result.outcome, result.run_id) == ("as published", "once")
    assert "the services started once" in result.doubt
    for brief in (True, False):
        shown = shown_ledger([result], brief=brief)
        assert "doubtful" in shown.text["what became of it"].item()
    assert shown.notes[-1] == f"Doubtful, 1 row by run once: {result.doubt}"
    write("afresh")
    assert (entry().run_id, entry().doubt) == ("afresh", "")
    assert "doubtful" not in "".join(shown_ledger([entry()]).notes).lower()


@pytest.mark.promise
def test_a_run_at_another_load_gives_a_size_no_verdict(write: Write) -> None:
    write("other_load", {"concurrency": 20})
    assert entry().outcome == "not measured"
    write("published_load")
    assert entry().run_id == "published_load"


def test_unfinished_runs_and_those_of_another_contrast_are_no_evidence(write: Write) -> None:
    contrast = plan_of("synchronous_commit").contrasts[0]
    write("before", contrasts=[contrast.model_copy(update={"published_ratio": 1.1})])
    write("broken", state="interrupted")
    assert entry().outcome == "not measured"


def test_the_run_with_most_blocks_speaks(write: Write) -> None:
    write("longer", {"backend": "docker"}, blocks=8)
    write("shorter", {"fresh_blocks": 2}, blocks=4, seed=5)
    assert entry().run_id == "longer"


PLANNED = [
    Planted({"database_write": "yes", "synchronous_commit": "on"}, 1.0),
    Planted({"database_write": "yes", "synchronous_commit": "off"}, 1.6),
    NO_WRITE,
]


def test_a_run_with_the_parameters_of_the_answer_speaks_before_longer_ones(write: Write) -> None:
    first = write("20260101-alpha")
    write("20260102-beta", {"fresh_blocks": 2}, blocks=8)
    assert entry().run_id == first.run_id
    # A parameter that is newer than the run had what is its default today.
    older = {name: value for name, value in first.record.parameters.items() if name != "workers"}
    RunWriter.reopen(first.path).update(parameters=older)
    assert entry().run_id == first.run_id


def test_a_view_is_shown_and_not_judged(write: Write, bring: Bring) -> None:
    write("measured", treatments=PLANNED)
    bring("result,view,synchronous_commit,throughput,")
    (result,) = ledger("own")
    assert (result.outcome, result.run_id) == ("shown, not judged", "measured")
    assert not result.judged


@pytest.mark.promise
def test_a_run_without_the_treatments_in_question_does_not_show_them(
    write: Write, bring: Bring
) -> None:
    write("measured", treatments=PLANNED[:2])
    bring("result,view,synchronous_commit,throughput,")
    (result,) = ledger("own")
    assert (result.outcome, result.command) == ("not measured", "perflab run synchronous_commit")


def test_a_claimed_share_has_a_verdict_like_any_other(write: Write) -> None:
    assert entry("claims / claim 1").outcome == "not measured"
    write("measured", treatments=PLANNED)
    result = entry("claims / claim 1")
    assert (result.outcome, result.n, result.run_id, result.judged) == (
        "as published", ("6",), "measured", True,
    )  # fmt: skip
    assert "the interval excludes 0.5 (the limit)" in result.why
    assert re.fullmatch(r"6\d\.\d% \[.*\]", result.measured[0])
    assert entry("claims / claim 4").n == ("6", "6")


def test_a_claimed_share_of_another_load_gives_a_number_no_verdict(write: Write) -> None:
    number = "published effects / flush in the write / share_of_write"
    write("other_load", {"concurrency": 20}, treatments=PLANNED)
    assert entry(number).outcome == "not measured"
    assert entry("claims / claim 1").outcome == "in the direction published"
    write("published_load", treatments=PLANNED)
    assert (entry(number).run_id, entry(number).outcome) == ("published_load", "as published")


# ---- same estimand or no comparison -------------------------------------------------------------


def row(kind: str, measure: str, item: str = "a") -> Number:
    cells = {"study": "chat", "place": "published results", "scenario": "JSON", "unit": "ms",
             "value": 203.0, "answered_by": "contrast", "experiment": "ladder"}  # fmt: skip
    return Number.model_validate({**cells, "kind": kind, "measure": measure, "item": item})


def contrast(**changes: object) -> Contrast:
    words = {
        "name": "a", "claim": "b", "response": "all_ping_p90_ms", "published_ratio": 0.8,
        "numerator": {"v": "b"}, "denominator": {"v": "a"}, "source": "study", **changes,
    }  # fmt: skip
    return Contrast.model_validate(words)


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.promise
def test_a_size_is_judged_by_its_own_response_at_the_published_load_only(kind: str) -> None:
    pings = row(kind, "p90_latency")
    assert mismatch(pings, contrast()) == ""
    other = mismatch(pings, contrast(response="delivery_p90_ms"))
    assert "is not what delivery_p90_ms measures" in other
    assert mismatch(pings, contrast(published_ratio=None)) == "the load is not the published one"
    assert "is not what" in mismatch(row(kind, "cpu"), contrast())


def test_a_claim_in_words_is_judged_by_its_direction() -> None:
    directed = contrast(response="delivery_p90_ms", published_ratio=None,
                        published_direction="smaller")  # fmt: skip
    claim = Claim(study="chat", place="claims", claim_id="claim 1", claim="It is faster.")
    assert mismatch(claim, directed) == ""


def test_a_star_covers_contrasts_and_nothing_else_does() -> None:
    answered = row("result", "p90_latency", "b (x) against a, p*")
    assert answered.covers("b (x) against a, p90")
    assert not answered.covers("b (x) against a, CPU")
    assert not answered.covers("b x against a, p90")


# Answers without the cells that they need, with others, or of no kind.
UNFIT = {
    "contrast,,a,": "answered_by = 'contrast' needs experiment and item, and nothing else",
    "contrast,ladder,,": "needs experiment and item",
    "check,ladder,a,": "answered_by = 'check' needs item, and nothing else",
    "not comparable,,,": "answered_by = 'not comparable' needs reason",
    "view,ladder,a,absolute": "needs experiment and item, and nothing else",
    ",,a,": "answered_by = '' needs no other column",
    "not comparible,,,absolute": "answered_by = 'not comparible': must be 'contrast', 'rule'",
}


@pytest.mark.parametrize(("cells", "said"), UNFIT.items())
def test_an_answer_with_other_cells_than_it_needs_is_refused_with_its_line(
    cells: str, said: str, bring: Bring
) -> None:
    bring("result,setting,synchronous_commit,concurrency,", f"result,{cells}")
    with pytest.raises(RecordingError, match=rf"own\.csv, line 3: .*{re.escape(said)}"):
        ledger("own")


@pytest.mark.usefixtures("write")
def test_percentiles_of_pings_are_answered_by_the_published_preset() -> None:
    numbers = [item for item in ledger("chat") if isinstance(item.row, Number)]
    percentiles = [item for item in numbers if item.row.key.rpartition(" / ")[2].startswith("p9")]
    pings = [item for item in percentiles if item.row.place == "published results"]
    assert len(pings) == 57
    assert {ping.row.answered_by for ping in pings} == {Answered.CONTRAST}
    typed = {ping.command for ping in pings if ping.outcome == "not measured"}
    at_published_load = (
        r"perflab run chat_ladder -p preset=published -p rungs=[a-z_0-9,]+ -p blocks=4"
    )
    assert [words for words in typed if not re.fullmatch(at_published_load, words)] == []
    # The others have too few pings for a p99 (of 13 rows), or no second core.
    others = [ping.row for ping in pings if ping.outcome == "not testable here"]
    assert {other.measure for other in others if "bound" not in other.scenario} == {"p99_latency"}
    assert len(others) == 13 + 2


# ---- counts -------------------------------------------------------------------------------------


def test_every_row_is_counted_once_in_the_column_of_its_study() -> None:
    entries = ledger()
    table = count_table(entries)
    assert table["all"].sum() == len(entries) == len(rows())
    assert table["chat"].sum() == len(rows("chat"))
    assert headline(entries).startswith(f"{len(entries)} published rows. ")
    assert "no answer" not in list(table["what became of it"])


def test_rows_are_narrowed_by_outcome(write: Write) -> None:
    write("measured")
    entries = ledger("inference")
    assert EFFECT in [item.row.key for item in narrowed(entries, "judged")]
    assert [item.row.key for item in narrowed(entries, "as published")] == [EFFECT]
    with pytest.raises(ParameterError, match="did you mean 'not comparable'"):
        narrowed(entries, "not comparabel")


# ---- a system from outside the lab --------------------------------------------------------------


def test_a_foreign_study_brings_rows_and_answers_of_its_own(bring: Bring) -> None:
    bring("setting,setting,synchronous_commit,concurrency,")
    assert faults("own") == [
        "table / a0 / rate: synchronous_commit: concurrency is 50, published is 5 requests/s"
    ]


# Answers that name nothing, each with what is said of it.
NOTHING = {
    ",,,": "it has no answer",
    "contrast,synchronous_comit,off against on,": "did you mean 'synchronous_commit'",
    "contrast,synchronous_commit,on against off,": "has no contrast 'on against off'",
    "contrast,synchronous_commit,off against on,": "is not what throughput_rps measures",
    "view,synchronous_commit,flushes,": "there is no view 'flushes'",
    "rule,synchronous_commit,claim 2,": "no rule of system 'inference' judges 'claim 2'",
    "check,,Little,": "there is no check 'Little'",
    "same as,,table / b / rate,": "there is no row 'table / b / rate'",
    "not comparable,,,pongs": "there is no reason 'pongs'",
}


def test_an_answer_that_names_nothing_is_a_fault_and_no_verdict(write: Write, bring: Bring) -> None:
    write("measured")
    bring(*(f"result,{answer}" for answer in NOTHING))
    entries = ledger("own")
    for result, expected in zip(entries, NOTHING.values(), strict=True):
        assert result.outcome == "no answer"
        assert expected in result.why
    assert not any(result.judged for result in entries)
