"""Figures of connections: published beside measured, and every figure is drawn from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.recordings import Run
from perflab.systems.metricstream.figures.life_cycle_parts import LIFE_CYCLE_PARTS, parts_table
from perflab.systems.metricstream.figures.success_by_phase import success_table
from perflab.systems.metricstream.figures.throughput_over_clients import clients_table
from tests.figures.saved import check_drawn_from_files
from tests.figures.shown import all_words, cut_off, overlapping, picture, pictures
from tests.systems.metricstream.planted_connections import PLANTED_US, write_posts

OWN = {
    "phases": ["success_by_phase", "life_cycle_parts"],
    "parts": ["life_cycle_parts"],
    "clients": ["life_cycle_parts", "throughput_over_clients"],
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return {name: write_posts(tmp_path_factory.mktemp(name), (name,), 4) for name in OWN}


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_a_run_of_connections_has_its_figures_and_no_text_is_cut(name, planted, tmp_path) -> None:
    run = planted[name]
    drawn = pictures(run)
    every = {each for names in OWN.values() for each in names}
    assert [each for each in drawn if each in every] == OWN[name]
    for each in OWN[name]:
        assert cut_off(drawn[each]) == [], each
        assert overlapping(drawn[each]) == [], each
        assert run.run_id in all_words(drawn[each])
    check_drawn_from_files(run, OWN[name], Path(tmp_path))


def test_the_bars_are_the_planted_shares_and_both_ends_of_the_published_ranges(planted) -> None:
    table = parts_table(planted["parts"]).set_index(["treatment", "part"])["value"]
    shares = [table["rung=low_new", part] for part in ("connect", "send", "wait", "receive")]
    assert shares == pytest.approx([each / sum(PLANTED_US) for each in PLANTED_US[:4]])
    assert table["rung=low_reused", "connect"] == table["rung=low_reused", "close"] == 0
    assert table["published: least connecting", "connect"] == pytest.approx(0.67)
    assert table["published: most connecting", "close"] == pytest.approx(0.07)


def test_a_treatment_without_a_valid_trial_says_so_in_its_place(tmp_path) -> None:
    def refused(rung: str, block: int) -> dict[str, object]:  # noqa: ARG001
        return {"state": "invalid"} if rung == "low_new" else {}

    run = write_posts(tmp_path, ("parts",), 2, refused)
    table = parts_table(run)
    assert list(table.loc[table["treatment"] == "rung=low_new", "what"]) == ["no valid trial"]
    assert "no valid trial" in all_words(picture(LIFE_CYCLE_PARTS, run))


def test_success_lies_beside_what_was_published_before_and_after_the_phase(planted) -> None:
    table = success_table(planted["phases"])
    own = table[table["treatment"] == "rung=phase_6"].set_index("what")["value"]
    assert own["published before"] == 50.69
    assert own["published after"] == 51.34
    assert set(table[table["treatment"] == "rung=phase_7"]["what"]) == {"trial", "typical"}


def test_the_published_limit_is_told_in_cores_of_the_measured_server(planted) -> None:
    table = clients_table(planted["clients"])
    (words,) = table.loc[table["what"] == "needed", "words"]
    # 374,600 requests of 50 us each.
    assert "18.7 cores" in words


def test_a_limit_on_the_server_s_cpu_is_told_beside_its_throughput(planted, tmp_path) -> None:
    assert "limited" not in set(clients_table(planted["clients"])["what"])
    limited = clients_table(write_posts(tmp_path, ("clients",), 2, server_cpus=0.2))
    (words,) = limited.loc[limited["what"] == "limited", "words"]
    assert words.startswith("the server could use 0.2 CPUs")
