"""Tables of verdicts: several runs stand in one, claims by rule too, and each gap says why."""

from __future__ import annotations

import html
import re
from io import StringIO

import pytest
from rich.console import Console

from perflab.figures import EFFECT
from perflab.recordings import Remark, Run, RunWriter
from perflab.reports.conversion import to_markdown
from perflab.reports.section import section_text
from perflab.reports.verdicts import shown_findings, to_terminal, verdict_table
from tests.figures.shown import one_line, overlapping, picture
from tests.support.synthetic import ON_AND_OFF, contrast_of, write_run

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
