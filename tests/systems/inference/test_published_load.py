"""A published size is compared only at the published load and set-up."""

from __future__ import annotations

import pytest

from tests.systems.planned import plan_of


def sizes(name: str, **changes: object) -> dict[str, float | None]:
    contrasts = plan_of(name, **changes).contrasts
    return {contrast.name: contrast.published_ratio for contrast in contrasts}


def warnings(name: str, **changes: object) -> str:
    return " ".join(map(str, plan_of(name, **changes).warnings))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workers": 1}, "workers is 1 (published: 4)"),
        ({"pool_size": 20}, "pool_size is 20 (published: 50)"),
        ({"concurrency": 20}, "concurrency is 20 (published: 50)"),
        ({"connection": "keep_alive"}, "connection is keep_alive (published: per_request)"),
        ({"round_trip_ms": 5.0}, "round_trip_ms is 5 (published: 0)"),
        ({"driver": "asyncpg"}, "driver is asyncpg (not published, by default: psycopg2)"),
    ],
)
def test_no_size_is_compared_if_a_setting_differs(changes: dict, words: str) -> None:
    assert sizes("synchronous_commit")["off against on"] is not None
    assert sizes("synchronous_commit", **changes)["off against on"] is None
    assert words in warnings("synchronous_commit", **changes)


def test_sizes_are_compared_whatever_the_backend_and_how_long_is_measured() -> None:
    changes = {
        "blocks": 3, "backend": "process", "seed": 1, "requests": 300, "warmup_requests": 0,
        "start_requests": 100,
    }  # fmt: skip
    assert sizes("synchronous_commit", **changes)["off against on"] is not None
    assert "published sizes" not in warnings("synchronous_commit", **changes)


def test_only_the_published_or_default_level_of_a_factor_has_a_size() -> None:
    size_of = sizes("sync_vs_async", preset="published")
    assert [name for name, size in size_of.items() if size] == [
        "async against sync, 0 ms, minconn max"
    ]


def test_the_default_load_of_fewer_requests_is_compared_with_the_published_one() -> None:
    name = "no write against write (onnx)"
    for preset in ("quick", "published"):
        assert sizes("inference_runtime", preset=preset)[name] == pytest.approx(1087 / 320)
