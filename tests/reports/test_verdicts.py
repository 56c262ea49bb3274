"""Tables of verdicts and sections of documents: complete, and each gap says why."""

from __future__ import annotations

import html
from dataclasses import replace
from pathlib import Path

import pytest

from perflab.analysis.evaluation import evaluate
from perflab.figures import EFFECT
from perflab.figures.origin import footer, page_of
from perflab.recordings import Remark, Run, RunWriter
from perflab.reports.conversion import section_html
from perflab.reports.figures import save_all
from perflab.reports.findings import ADJUSTED, readable_findings, reading_notes
from perflab.reports.methods import first_said
from perflab.reports.section import bottlenecks, section_text, write_section
from perflab.reports.verdicts import shown_findings
from tests.figures.shown import one_line, overlapping, picture
from tests.reports.test_duel_answer import CALM, finding, ratio
from tests.support.synthetic import ON_AND_OFF, contrast_of, write_run
from tests.systems.chat.synthetic_streams import write_ladder

CUT = (
    "5 requests were cut off before their end, and could move what is given as a bound: "
    "mean >= 9 ms"
)
# A warning about the p99 does not concern the mean.
OF_P99 = Remark(code="generator.client_time", text="more than a tenth of the p99 of 1.2 ms")
WHY = f"no mean response time from 6 of 12 valid trials: {CUT} (6 trials)"


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run in which cut-off requests of one treatment could move its mean."""
    claim = contrast_of(*reversed(ON_AND_OFF), response="mean_ms", published_ratio=0.6,
                        published_direction="smaller")  # fmt: skip
    planted = write_run(tmp_path_factory.mktemp("cut"), requests=40, contrasts=[claim])
    trials = planted.trials()
    for place in trials.index[trials["treatment"] == ON_AND_OFF[0].name]:
        remarks = [Remark(code="load.censored", text=CUT), OF_P99]
        trials.at[place, "mean_ms"], trials.at[place, "warnings"] = float("nan"), remarks
    planted._trials = trials
    return planted


def test_where_a_claim_has_no_number_every_view_of_it_says_why(cut_off: Run) -> None:
    assert html.escape(WHY) in shown_findings(cut_off, evaluate(cut_off))._repr_html_()
    text = section_text(cut_off, evaluate(cut_off))
    assert text.count(WHY.removeprefix("no ")) == 2
    assert "a tenth" not in text
    figure = picture(EFFECT, cut_off)
    assert WHY in one_line(figure)
    assert not overlapping(figure)


@pytest.mark.parametrize(
    ("claims", "notes"), [((12, 12, 0), [f"{ADJUSTED} allows for 12 claims."]), ((12, 3), [])]
)
def test_the_number_of_claims_stands_below_the_table_where_it_is_one(
    claims: tuple[int, ...], notes: list[str]
) -> None:
    found = [replace(finding("mean_ms", ratio(1.1 * CALM)), claims=number) for number in claims]
    assert reading_notes(found) == notes
    assert ADJUSTED in readable_findings(found)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("runs"))


def test_a_run_whose_every_trial_failed_still_makes_a_section(tmp_path) -> None:
    all_trials = {(block, index) for block in range(2) for index in range(2)}
    failed = write_run(tmp_path / "runs", blocks=2, failed=all_trials, state="failed")
    saved = save_all(failed, tmp_path / "report" / failed.run_id)
    text = write_section(failed, evaluate(failed), tmp_path / "report", saved).read_text()
    assert "This run is failed (planted by a test)" in text
    assert text.count("| failed | service 'postgres': died (planted) |") == 4, "each trial says it"
    assert "nan" not in text.lower()


def test_of_a_killed_run_no_page_says_that_it_runs(tmp_path: Path) -> None:
    killed = write_run(tmp_path, blocks=2, state="running")
    assert first_said(killed)[0].startswith("This run is not finished: what follows rests on")
    assert "run not finished" in footer(killed).splitlines()
    begun = write_run(tmp_path / "begun", blocks=1, measured=0, state="running")
    assert page_of(begun).nothing == "The run has no trial: it is not finished."


def test_a_hostile_title_makes_no_picture_no_mark_and_no_element(tmp_path) -> None:
    hostile = write_run(tmp_path, blocks=1)
    title = "a\n<!-- perflab:end -->\n![x](http://example.org/x.png) <img src=x>"
    RunWriter.reopen(hostile.path).update(title=title)
    told = Run(hostile.path)
    text = section_text(told, evaluate(told))
    page = section_html(text, {})
    assert "<img" not in page
    assert not any(line.startswith("<!--") for line in text.splitlines())


def test_logins_are_not_taken_for_the_work_of_a_run_of_streams(run, tmp_path) -> None:
    streams = write_ladder(tmp_path, {"json_login_20": [{}]})
    logins = run.requests().assign(treatment=streams.record.treatments[0].name)
    streams.requests = lambda *_, **__: logins
    assert bottlenecks(streams) == []
    assert "This run does not measure requests" in section_text(streams, evaluate(streams))
    assert bottlenecks(run)
