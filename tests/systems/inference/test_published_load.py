"""A published size is compared only at the published load and set-up."""

from __future__ import annotations

import pytest

from perflab.systems import experiment
from perflab.trials.experiment import Experiment


def sizes(name: str, **changes: object) -> dict[str, float | None]:
    chosen: Experiment = experiment(name)
    return {
        contrast.name: contrast.published_ratio
        for contrast in chosen.plan(chosen.check(changes)).contrasts
    }


def warnings(name: str, **changes: object) -> str:
    chosen = experiment(name)
    return " ".join(map(str, chosen.plan(chosen.check(changes)).warnings))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workers": 1}, "workers is 1 (published: 4)"),
        ({"pool_size": 20}, "pool_size is 20 (published: 50)"),
        ({"connection": "keep_alive"}, "connection is keep_alive (published: per_request)"),
        ({"round_trip_ms": 5.0}, "round_trip_ms is 5 (published: 0)"),
        ({"driver": "asyncpg"}, "driver is asyncpg (not published, by default: psycopg2)"),
    ],
)
def test_no_size_is_compared_if_a_setting_differs(changes: dict, words: str) -> None:
    assert sizes("synchronous_commit")["off against on"] is not None
    assert sizes("synchronous_commit", **changes)["off against on"] is None
    assert words in warnings("synchronous_commit", **changes)


def test_sizes_are_compared_whatever_the_blocks_backend_and_seed() -> None:
    changes = {"blocks": 3, "backend": "process", "seed": 1, "warmup_requests": 0}
    assert sizes("synchronous_commit", **changes)["off against on"] is not None
    assert "published sizes" not in warnings("synchronous_commit", **changes)


def test_only_the_published_or_default_level_of_a_factor_has_a_size() -> None:
    size_of = sizes("sync_vs_async", preset="published")
    assert [name for name, size in size_of.items() if size] == [
        "async against sync, 0 ms, minconn max"
    ]


def test_a_smaller_default_load_is_not_the_published_one() -> None:
    name = "no write against write (onnx)"
    assert sizes("inference_runtime")[name] is None
    assert sizes("inference_runtime", preset="published")[name] == pytest.approx(1087 / 320)
