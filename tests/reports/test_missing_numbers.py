"""Where a claim has no number, every view of it says why."""

from __future__ import annotations

import html
import re
from io import StringIO

import pytest
from rich.console import Console

from perflab.figures import EFFECT
from perflab.recordings import Remark, Run, RunWriter
from perflab.reports.section import section_text
from perflab.reports.verdicts import shown_findings, to_terminal, verdict_table
from tests.figures.shown import one_line, overlapping, picture
from tests.support.synthetic import ON_AND_OFF, contrast_of, write_run

CUT = (
    "5 requests were cut off before their end, and could move what is given as a bound: "
    "mean >= 9 ms"
)
WHY = f"no mean response time from 6 of 12 valid trials: {CUT} (6 trials)"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
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


def plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_the_terminal_says_why(run: Run) -> None:
    console = Console(file=StringIO(), width=400)
    console.print(to_terminal(verdict_table([run])))
    assert isinstance(console.file, StringIO)
    assert WHY in plain(console.file.getvalue())


def test_the_notebook_and_the_section_say_why(run: Run) -> None:
    assert WHY in plain(shown_findings(run)._repr_html_())
    text = section_text(run)
    assert text.count(WHY.removeprefix("no ")) == 2


def test_the_figure_says_why(run: Run) -> None:
    figure = picture(EFFECT, run)
    assert WHY in one_line(figure)
    assert not overlapping(figure)
