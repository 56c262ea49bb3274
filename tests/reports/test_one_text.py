"""One quantity has one text, in tables, sentences, answers and figures."""

from __future__ import annotations

import re

import pytest

from perflab.analysis.effect_words import effect_text
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.findings import sentence
from perflab.figures.origin import in_words, typical_rows
from perflab.figures.plots import effect_rows
from perflab.figures.plots.effects import effect_table
from perflab.figures.plots.time_breakdown import OF_WHOLE, WHOLE_RESPONSE, time_breakdown_table
from perflab.paths import project_root
from perflab.recordings import Run, reference_runs
from perflab.reports.duel_pairs import pairs_of
from perflab.reports.duel_table import result_table
from perflab.reports.duels import are_variants
from perflab.reports.findings import claim_answers, readable_findings, readable_summary
from perflab.reports.rules import findings_of
from perflab.reports.section import page_text
from tests.golden.recordings import write_recording

EXPERIMENTS = ("custom_service", "latency_cpu", "synchronous_commit", "connection_lifecycle")
CLAIMED = [f"{name}/claimed" for name in EXPERIMENTS]
# A difference without its unit, such as "+0.141 [0.132, 0.148]".
WITHOUT_UNIT = re.compile(r"[+-][\d.,]+ \[")


@pytest.fixture(scope="module", params=CLAIMED)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_recording(tmp_path_factory.mktemp("run"), request.param)


def in_figure(run: Run, findings: list[Finding]) -> list[str]:
    """Return the texts of effects in the figure of effects."""
    records = effect_table(run, findings).to_dict("records")
    claims = [effect_rows.claim_of(record) for record in records]
    return [effect_rows.measured(claim) for claim in claims if claim.of_blocks]


def check_effects(run: Run) -> None:
    findings = [finding for finding in findings_of(run) if finding.effect]
    texts = [effect_text(finding) for finding in findings]
    told = readable_findings(findings)["measured [95%]"]
    assert set(texts) <= set(told)
    drawn = [finding for finding in findings if finding.contrast in run.record.contrasts]
    assert in_figure(run, findings) == [effect_text(finding) for finding in drawn]
    for text, finding in zip(texts, findings, strict=True):
        assert text.removesuffix(" (no interval)") in sentence(finding)
    pages = [page_text(run, findings), *(answer.text for answer in claim_answers(findings))]
    assert [text for text in (*pages, *texts) if WITHOUT_UNIT.search(text)] == []


def check_times(run: Run) -> None:
    """The mean response time of a treatment is that of the summary."""
    table = time_breakdown_table(run)
    whole = table[table["part"] == WHOLE_RESPONSE].set_index("treatment")
    assert len(whole)
    parts = table[table["part"] != WHOLE_RESPONSE].groupby("treatment")["mean_ms"].sum()
    summary = readable_summary(run).set_index("treatment")["mean ms"]
    labels = run.record.labels
    for name, row in whole.rename(columns={ours: own for own, ours in OF_WHOLE.items()}).iterrows():
        value, interval, _ = in_words(row.to_dict()).split("\n")
        assert summary[labels[str(name)]] == f"{value} {interval}"
        # Streams have no parts.
        assert parts.get(name, row["value"]) == pytest.approx(row["value"])


def test_an_effect_has_one_text_everywhere(run: Run) -> None:
    check_effects(run)


def test_a_mean_response_time_has_one_text_everywhere(run: Run) -> None:
    drawn = not run.requests().empty  # without its requests a response has no parts to draw
    if drawn and "mean ms" in readable_summary(run) and len(typical_rows(run, "mean_ms")):
        check_times(run)


def test_the_table_of_a_duel_has_the_texts_of_its_findings(run: Run) -> None:
    if are_variants(run):
        findings = evaluate(run)
        told = set(result_table(run, pairs_of(findings, (), ()))["ratio [95%]"])
        assert told == {effect_text(finding) for finding in findings}
        assert any("points [" in text for text in told)


@pytest.mark.parametrize("experiment", ["latency_cpu", "synchronous_commit"])
def test_a_shipped_run_has_one_text_for_an_effect(
    experiment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFLAB_REFERENCE", str(project_root() / "data" / "reference"))
    check_effects(reference_runs(experiment)[0])
