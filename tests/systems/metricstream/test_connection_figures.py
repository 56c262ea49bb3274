"""Figures of connections show published beside measured."""

from __future__ import annotations

import pytest

from perflab.recordings import Run
from perflab.systems.metricstream.views import parts_table
from tests.figures.shown import check_texts
from tests.systems.metricstream.planted_connections import PLANTED_US, write_posts

NEW, REUSED = "rung=phase_6", "rung=phase_7"


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_posts(tmp_path_factory.mktemp("phases"), ("phases",), 4)


@pytest.mark.slow
def test_a_run_of_connections_has_its_figures_and_no_text_is_cut(phases: Run) -> None:
    check_texts(phases, ["success_by_phase", "life_cycle_parts"])


def test_the_bars_are_the_planted_shares_and_both_ends_of_the_published_ranges(
    phases: Run,
) -> None:
    table = parts_table(phases).set_index(["treatment", "part"])["value"]
    shares = [table[NEW, part] for part in ("connect", "send", "wait", "receive")]
    assert shares == pytest.approx([part_us / sum(PLANTED_US) for part_us in PLANTED_US[:4]])
    assert table[REUSED, "connect"] == table[REUSED, "close"] == 0
    assert table["published: least connecting", "connect"] == pytest.approx(0.67)
    assert table["published: most connecting", "close"] == pytest.approx(0.07)
