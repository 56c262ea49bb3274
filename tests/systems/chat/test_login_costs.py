"""What logins cost, over the cost of their hash: paired in blocks, and a line that can be used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from perflab.errors import ParameterError
from perflab.figures import draw_view
from perflab.recordings import Run
from perflab.systems import experiment
from perflab.systems.chat.analysis.login_costs import COSTLY, FREE, costs_of_logins, login_line
from perflab.systems.chat.figures.login_cost import LOGIN_COST, login_cost_table
from tests.figures.saved import check_columns_are_seen
from tests.figures.shown import all_words, cut_off, overlapping
from tests.systems.chat.synthetic_streams import write_ladder

# Of a core: free logins in each block, and what those of 11, 8 and 9 rounds take beside.
FREE_SHARES = (0.20, 0.30, 0.25)
EXTRA = {11: 0.02 + 0.32, 8: 0.02 + 0.04, 9: 0.02 + 0.08}


def run_of(folder: Path, rounds: Sequence[int]) -> Run:
    planted, levels = {}, {}
    for place, number in enumerate((rounds[0], 0, *rounds[1:])):
        rung = (FREE if not number else COSTLY if not place else f"{COSTLY}_{number}", 100 + place)
        extra = EXTRA.get(number, 0.0)
        planted[rung] = [{"join_cpu_share_chat": share + extra} for share in FREE_SHARES]
        levels[rung] = {"rung": rung[0], "bcrypt_rounds": str(number or rounds[0])}
    return write_ladder(folder, planted, levels)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(tmp_path_factory.mktemp("logins"), (11, 8, 9))


def test_each_cost_is_compared_with_the_free_logins_of_its_block(run: Run) -> None:
    found = costs_of_logins(run)
    assert list(found["rounds"]) == [8, 9, 11]
    assert found["points"].to_list() == pytest.approx([6, 10, 34])
    # Blocks differ by ten points, and their differences not at all.
    assert found["high"].to_list() == pytest.approx([6, 10, 34])
    assert list(found["n"]) == [3, 3, 3]


def test_the_line_tells_what_doubles_from_what_does_not(run: Run) -> None:
    line = login_line(costs_of_logins(run))
    assert line is not None
    assert line.other_points == pytest.approx(2)
    assert line.rounds_of(2 + 64) == pytest.approx(12)


def test_a_full_core_is_no_cost_of_a_login(run: Run) -> None:
    costs = costs_of_logins(run)
    costs.loc[costs["rounds"] == 11, "points"] = 95.0
    assert login_line(costs) is None, "two costs make no line that could be off"


def test_the_figure_says_where_the_published_points_would_appear(run: Run) -> None:
    figure = draw_view(LOGIN_COST, run)
    assert "70 points would be 12.1 rounds here" in all_words(figure).replace("\n", " ")
    assert cut_off(figure) == []
    assert overlapping(figure) == []


def test_every_column_of_its_file_is_seen(run: Run) -> None:
    check_columns_are_seen(run, ["login_cost"])


def test_one_cost_is_no_curve_and_is_told(tmp_path: Path) -> None:
    only = run_of(tmp_path, (11,))
    assert login_cost_table(only).empty
    assert "login_rounds asks for more" in all_words(draw_view(LOGIN_COST, only))


def test_further_costs_are_rungs_of_their_own_with_services_of_their_own() -> None:
    latency_cpu = experiment("latency_cpu")
    plan = latency_cpu.plan(latency_cpu.check({"login_rounds": [8, 11], "bcrypt_rounds": 11}))
    rounds = {
        each.levels["rung"]: each.stack.nodes[0].settings["bcrypt_rounds"]
        for each in plan.treatments
    }
    assert rounds == {COSTLY: 11, FREE: 11, f"{COSTLY}_8": 8}


def test_rounds_are_of_bcrypt_alone() -> None:
    with pytest.raises(ParameterError, match="login_rounds are bcrypt's"):
        experiment("latency_cpu").check({"login_rounds": [8], "login_hash": "argon2"})
