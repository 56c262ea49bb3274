"""Verdicts of several runs stand in one table; numbers keep their interval and n."""

from __future__ import annotations

import pytest

from perflab.reports.conversion import to_markdown
from perflab.reports.verdicts import verdict_table
from tests.support.synthetic import ON_AND_OFF, contrast_of, write_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    all_trials = {(block, index) for block in range(2) for index in range(2)}
    untestable = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], not_testable="needs 4 cores")
    return [
        write_run(root, noise=0.01, seed=1),
        write_run(root, blocks=2, failed=all_trials, state="failed", seed=2),
        write_run(root, blocks=2, contrasts=[untestable], seed=3),
        write_run(root, blocks=2, contrasts=[], seed=4),
    ]


def test_every_claim_of_every_run_has_a_row(runs) -> None:
    table = verdict_table(runs)
    assert list(table["verdict"]) == ["reproduced", "undecided", "not testable here"]
    assert (table["experiment"] == "synchronous_commit").all()
    assert (table["backend"] == "process").all()


def test_what_was_not_measured_is_a_dash_and_never_nan(runs) -> None:
    table = verdict_table(runs)
    assert table.iloc[1]["measured [95%]"] == "–"
    assert "nan" not in to_markdown(table).lower()
