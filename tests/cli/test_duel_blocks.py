"""A duel has as many blocks as its first line and its gate need, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perflab.cli.duel_file import given
from perflab.errors import ParameterError
from perflab.systems import experiment

NAME = "custom_service"


def variants(count: int) -> list[str]:
    return [f"v{number}=command:python3 server.py --port {{port}}" for number in range(count)]


def blocks_of(count: int, thresholds: int, **values: Any) -> Any:
    options = {"variants": variants(count), **values}
    return given(NAME, "", options, "", ["p99>1.05"] * thresholds)[0].get("blocks")


@pytest.mark.parametrize(("count", "blocks"), [(2, 10), (3, 11), (4, 11), (5, 12)])
def test_without_a_number_a_duel_has_one_block_more_than_all_its_pairs_need(
    count: int, blocks: int
) -> None:
    assert experiment(NAME).check({"variants": variants(count)}).planned_blocks == blocks
    assert experiment(NAME).check({"variants": variants(count), "blocks": 6}).planned_blocks == 6


@pytest.mark.parametrize(
    ("count", "thresholds", "blocks"), [(2, 7, 10), (2, 40, 11), (3, 7, 11), (3, 60, 13)]
)
def test_without_a_number_a_duel_has_one_block_more_than_its_gate_needs(
    count: int, thresholds: int, blocks: int
) -> None:
    assert blocks_of(count, thresholds) == blocks


@pytest.mark.parametrize(
    ("values", "thresholds", "words"),
    [
        ({"blocks": "7"}, 7, "blocks = 7 is too few for 7 thresholds .* give blocks = 8 or more"),
        ({"blocks": 2}, 1, "blocks = 2 is too few for 1 threshold .* give blocks = 6 or more"),
        (
            {"blocks": "until_decided", "least_blocks": 6, "most_blocks": 6}, 7,
            "most_blocks = 6 is too few for 7 thresholds .* give most_blocks = 9 or more",
        ),
    ],
)  # fmt: skip
def test_a_gate_that_no_number_of_its_blocks_could_fail_is_refused(
    values: dict[str, Any], thresholds: int, words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        blocks_of(2, thresholds, **values)


@pytest.mark.parametrize(
    ("values", "thresholds"),
    [({"blocks": 8}, 7), ({"blocks": 3}, 7), ({"blocks": "until_decided"}, 40), ({"blocks": 1}, 0)],
)
def test_a_number_that_can_decide_stays_as_it_is_given(
    values: dict[str, Any], thresholds: int
) -> None:
    assert blocks_of(2, thresholds, **values) == values["blocks"]


def test_thresholds_of_a_file_count_too(tmp_path: Path) -> None:
    file = tmp_path / "duel.toml"
    limits = ", ".join(f'"{name}>1.05"' for name in ("mean", "p50", "p99", "memory"))
    file.write_text(
        f"blocks = 7\nfail_on = [{limits}]\n[variants]\n"
        'old = "command:cat {port}"\nnew = "command:cp {port}"\n'
    )
    given(NAME, str(file), {}, "", ["cpu>1.1"] * 2)
    with pytest.raises(ParameterError, match="blocks = 7 is too few for 7 thresholds"):
        given(NAME, str(file), {}, "", ["cpu>1.1"] * 3)
