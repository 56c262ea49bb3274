"""Tables of verdicts: several runs stand in one, claims by rule too, and each gap says why."""

from __future__ import annotations

import html
import math
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from perflab.analysis.evaluation import evaluate
from perflab.figures import EFFECT
from perflab.recordings import Remark, Run, RunWriter
from perflab.reports.conversion import to_markdown
from perflab.reports.findings import readable_findings, sentences
from perflab.reports.section import section_text
from perflab.reports.verdicts import shown_findings, to_terminal, verdict_table
from tests.figures.shown import one_line, overlapping, picture
from tests.support.synthetic import ON_AND_OFF, Planted, contrast_of, write_run
from tests.systems.llm.planted_streams import write_streams
from tests.systems.metricstream.test_client_or_server import planted, run_of

LIMITED = "the way the load generator was built was the bottleneck (a connection per request)"
COMPARABLE = "a threshold of failures makes runs comparable"
CUT = (
    "5 requests were cut off before their end, and could move what is given as a bound: "
    "mean >= 9 ms"
)
WHY = f"no mean response time from 6 of 12 valid trials: {CUT} (6 trials)"


def test_every_claim_of_every_run_has_a_row_and_what_was_not_measured_a_dash(tmp_path) -> None:
    all_trials = {(block, index) for block in range(2) for index in range(2)}
    untestable = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], not_testable="needs 4 cores")
    runs = [
        write_run(tmp_path, noise=0.01, seed=1),
        write_run(tmp_path, blocks=2, failed=all_trials, state="failed", seed=2),
        write_run(tmp_path, blocks=2, contrasts=[untestable], seed=3),
        write_run(tmp_path, blocks=2, contrasts=[], seed=4),
    ]
    table = verdict_table(runs)
    assert list(table["verdict"]) == ["reproduced", "undecided", "not testable here"]
    assert (table["experiment"] == "synchronous_commit").all()
    assert (table["backend"] == "process").all()
    assert table.iloc[1]["measured [95%]"] == "–"
    assert "nan" not in to_markdown(table).lower()


def on_terminal(run: Run) -> str:
    console = Console(width=400, record=True, file=StringIO())
    console.print(to_terminal(verdict_table([run])))
    return plain(console.export_text())


def plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(tmp_path_factory.mktemp("naive"), planted(0.5, 1.0), blocks=4)


def row_of(run: Run, claim: str) -> dict[str, str]:
    (row,) = (item for item in readable_findings(run).to_dict("records") if item["claim"] == claim)
    return {str(name): str(value) for name, value in row.items()}


def test_a_claim_judged_by_a_rule_of_its_own_has_a_row_with_what_it_rests_on(run: Run) -> None:
    row = row_of(run, LIMITED)
    assert re.fullmatch(r"0\.50 \[0\.\d+, 0\.\d+\]", row["measured [95%]"])
    assert row["published"] == "in words; the rule: smaller than 0.95"
    assert row["verdict"] == "direction shown"
    assert (row["n"], row["valid trials"]) == ("4", "8 of 8")
    assert row["source"] == "metricstream study, claim 4"


def test_it_has_a_dash_where_it_has_nothing_and_no_part_in_the_correction(run: Run) -> None:
    row, table = row_of(run, LIMITED), readable_findings(run)
    adjusted = next(name for name in row if name.startswith("p, adjusted"))
    assert {row[name] for name in ("p", adjusted, "decision", "single run")} == {"–"}
    counts = {finding.claims for finding in evaluate(run) if finding.claims}
    assert len(table) == len(evaluate(run)) + 1
    assert all(not math.isnan(count) and count < len(table) for count in counts)


def test_it_is_seen_in_the_terminal_the_notebook_and_the_section(run: Run) -> None:
    assert "load generator was built" in on_terminal(run)
    assert "the rule: smaller than 0.95" in shown_findings(run)._repr_html_()
    section = section_text(run)
    assert section.count(LIMITED) == 2, "among the verdicts, and in the table"
    assert any(line.startswith(f"Direction shown: {LIMITED}. Source:") for line in sentences(run))


def test_a_share_of_pairs_counts_the_trials_that_it_looks_at(tmp_path: Path) -> None:
    run = write_streams(tmp_path, ("kinds", "limits"), blocks=3)
    row = row_of(run, COMPARABLE)
    assert (row["n"], row["valid trials"]) == ("12", "12 of 12")
    assert row["published"] == "in words; the rule: at most 0.05"


def test_a_run_that_cannot_speak_to_a_claim_has_no_row_of_it(tmp_path: Path) -> None:
    run = write_streams(tmp_path, ("kinds",), blocks=2)
    assert COMPARABLE not in set(readable_findings(run)["claim"])


def test_a_claim_of_several_parts_has_a_row_for_each_and_one_for_all(tmp_path: Path) -> None:
    levels = (("yes", "on"), ("yes", "off"), ("no", "none"))
    commits = tuple(
        Planted({"database_write": write, "synchronous_commit": commit}, ratio)
        for (write, commit), ratio in zip(levels, (1.0, 1.6, 3.4), strict=True)
    )
    contrasts = [contrast_of(commits[1], commits[0])]
    run = write_run(tmp_path, treatments=commits, blocks=3, requests=60, contrasts=contrasts)
    table = readable_findings(run).set_index("claim")
    whole = "claim 4: the system is not bound by CPU, and the system is bound by I/O"
    assert table.loc[whole, "measured [95%]"] == "–"
    assert table.loc[whole, "valid trials"] == "3 of 3", "only trials with commit on"
    assert table.loc["database writes dominate end-to-end latency", "valid trials"] == "6 of 6"
    assert table.loc["the system is bound by I/O", "measured [95%]"] != "–"


def test_where_nothing_was_measured_the_row_says_why(tmp_path: Path) -> None:
    def refused(rung: str, block: int) -> dict[str, object]:
        state = "invalid" if rung.startswith("naive_closes_new") else "valid"
        return {**planted(0.5, 1.0)(rung, block), "state": state}

    row = row_of(run_of(tmp_path, refused, blocks=3), LIMITED)
    assert (row["measured [95%]"], row["n"], row["verdict"]) == ("–", "0", "undecided")
    assert row["valid trials"] == "3 of 6"
    assert "a verdict needs at least 3" in row["left out"]


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run in which cut-off requests of one treatment could move its mean."""
    claim = contrast_of(*reversed(ON_AND_OFF), response="mean_ms", published_ratio=0.6,
                        published_direction="smaller")  # fmt: skip
    model = write_run(tmp_path_factory.mktemp("model"), requests=40, contrasts=[claim])
    writer = RunWriter.create(tmp_path_factory.mktemp("cut"), model.record)
    names = [name for name in model.trials() if name not in ("superseded", "boot_id")]
    for row in model.trials()[names].to_dict("records"):
        values = {str(name): value for name, value in row.items()}
        if str(values["treatment"]).endswith("=on"):
            values |= {
                "mean_ms": float("nan"),
                "warnings": [Remark(code="load.censored", text=CUT)],
            }
        trial = str(values["trial_id"])
        writer.commit_trial(values, model.requests(stage=None, trial_ids=[trial]), None)
    writer.update(state="finished")
    return Run(writer.path)


def test_where_a_claim_has_no_number_every_view_of_it_says_why(cut_off: Run) -> None:
    assert WHY in on_terminal(cut_off)
    assert WHY in plain(shown_findings(cut_off)._repr_html_())
    text = section_text(cut_off)
    assert text.count(WHY.removeprefix("no ")) == 2
    figure = picture(EFFECT, cut_off)
    assert WHY in one_line(figure)
    assert not overlapping(figure)
