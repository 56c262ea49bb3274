"""Figures of connections show published beside measured, and are drawn from their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.recordings import Run
from perflab.systems.metricstream.views import (
    LIFE_CYCLE_PARTS,
    clients_table,
    parts_table,
)
from tests.figures.saved import check_drawn_from_files
from tests.figures.shown import all_words, cut_off, overlapping, picture, pictures
from tests.systems.metricstream.planted_connections import PLANTED_US, write_posts

NEW, REUSED = "rung=phase_6", "rung=phase_7"
FIGURES = ["success_by_phase", "life_cycle_parts"]


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_posts(tmp_path_factory.mktemp("phases"), ("phases",), 4)


@pytest.mark.slow
def test_a_run_of_connections_has_its_figures_and_no_text_is_cut(
    phases: Run, tmp_path: Path
) -> None:
    drawn = pictures(phases)
    for name in FIGURES:
        assert cut_off(drawn[name]) == [], name
        assert overlapping(drawn[name]) == [], name
        assert phases.run_id in all_words(drawn[name])
    check_drawn_from_files(phases, FIGURES, tmp_path)


def test_the_bars_are_the_planted_shares_and_both_ends_of_the_published_ranges(
    phases: Run,
) -> None:
    table = parts_table(phases).set_index(["treatment", "part"])["value"]
    shares = [table[NEW, part] for part in ("connect", "send", "wait", "receive")]
    assert shares == pytest.approx([part_us / sum(PLANTED_US) for part_us in PLANTED_US[:4]])
    assert table[REUSED, "connect"] == table[REUSED, "close"] == 0
    assert table["published: least connecting", "connect"] == pytest.approx(0.67)
    assert table["published: most connecting", "close"] == pytest.approx(0.07)


def test_a_treatment_without_a_valid_trial_says_so_in_its_place(tmp_path: Path) -> None:
    def refused(rung: str, block: int) -> dict[str, object]:  # noqa: ARG001
        return {"state": "invalid"} if rung == "phase_6" else {}

    run = write_posts(tmp_path, ("phases",), 2, refused)
    table = parts_table(run)
    assert list(table.loc[table["treatment"] == NEW, "what"]) == ["no valid trial"]
    assert "no valid trial" in all_words(picture(LIFE_CYCLE_PARTS, run))


def test_the_published_limit_is_stated_in_cores_of_the_measured_server(tmp_path: Path) -> None:
    run = write_posts(tmp_path, ("clients",), 2, server_cpus=0.2)
    table = clients_table(run).set_index("what")["words"]
    # 374,600 requests of 50 us each.
    assert "18.7 cores" in table["needed"]
    assert table["limited"].startswith("the server could use 0.2 CPUs")
    figure = pictures(run)["throughput_over_clients"]
    assert cut_off(figure) == []
