"""Parts of the registry's health side that need no server: its aggregates, bounds and token."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from running import use_packages_of


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    """FastAPI is the service's, not the lab's."""
    use_packages_of("registry")


def summary(downloads: list[tuple[float, int, str]], total_s: float) -> Any:
    """Return the aggregates of downloads: latency in ms, bytes, outcome."""
    from registry.health.downloading import Download
    from registry.health.summary import summarize

    made = [Download(0, 1, int(ms * 1e6), count, 200, outcome) for ms, count, outcome in downloads]
    return summarize(made, total_s)


def test_the_published_optimised_run_gives_the_published_rates_under_their_right_names() -> None:
    found = summary([(51_257.91, 24_834_009, "done")] * 100, 63.197)
    assert found["bytes"] == 2_483_400_900
    assert found["throughput_bytes_per_s"] == pytest.approx(39_296_264, rel=1e-4)
    assert found["throughput_MB_per_s"] == pytest.approx(39.296, rel=1e-4)
    # Printed there as MB/s.
    assert found["throughput_MiB_per_s"] == pytest.approx(37.48, rel=1e-3)
    assert found["requests_per_s"] == pytest.approx(1.58, rel=2e-3)


def test_the_published_baseline_is_a_bound_everywhere() -> None:
    found = summary([(300_932.18, 0, "timed_out")] * 100, 301.16)
    assert found["success_rate"] == found["throughput_bytes_per_s"] == found["requests_per_s"] == 0
    latency = found["latency"]
    assert all(latency[name]["at_least"] for name in ("mean", "median", "min", "max"))
    assert latency["mean"]["ms"] == 300_932.18


def test_a_p99_is_given_from_368_downloads_on() -> None:
    downloads = [(float(ms), 1, "done") for ms in range(1, 368)]
    few = summary(downloads, 1.0)["latency"]["p99"]
    assert few["ms"] is None
    assert few["reason"].startswith("a p99 needs 368 downloads, these are 367")
    enough = summary([*downloads, (368.0, 1, "done")], 1.0)["latency"]["p99"]
    assert enough == {"ms": pytest.approx(1 + 0.99 * 367), "at_least": False}


def test_a_quantile_is_a_bound_only_where_it_lies_among_timeouts() -> None:
    downloads = [(10.0, 1, "done"), (20.0, 1, "done"), (30.0, 1, "done"), (99.0, 0, "timed_out")]
    latency = summary(downloads, 1.0)["latency"]
    assert latency["median"] == {"ms": 25.0, "at_least": False}
    assert latency["mean"] == {"ms": 39.75, "at_least": True}
    latency = summary([*downloads, (99.0, 0, "timed_out"), (99.0, 0, "timed_out")], 1.0)["latency"]
    assert latency["median"] == {"ms": 64.5, "at_least": True}


def test_what_failed_otherwise_has_no_part_in_latencies() -> None:
    latency = summary([(10.0, 1, "done"), (1.0, 0, "broken"), (2.0, 9, "refused")], 1.0)["latency"]
    assert (latency["n"], latency["min"]["ms"], latency["max"]["ms"]) == (1, 10.0, 10.0)


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("arnir0/Tiny-LLM", "/performance/arnir0_Tiny-LLM/main/model.zip"),
        ("arnir0_Tiny-LLM", "/performance/arnir0_Tiny-LLM/main/model.zip"),
        ("a.b-c_d", "/performance/a.b-c_d/main/model.zip"),
    ],
)
def test_a_models_name_is_a_path_of_its_own(model: str, path: str) -> None:
    from registry.health.workload import read_workload

    body = json.dumps({"num_clients": 1, "model_id": model, "duration_seconds": 1})
    assert read_workload(body.encode()).path("main") == path


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x" * 16 + "\n", "read"),
        ("short", "a token must have 16 characters or more"),
        ("", "a token must have 16 characters or more"),
        (None, "No such file"),
    ],
    ids=["long enough", "too short", "empty", "no file"],
)
def test_a_token_comes_from_a_file_and_is_never_repeated(
    tmp_path: Path, content: str | None, said: str
) -> None:
    from registry.health.secret import Secret

    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    if said == "read":
        Secret.read(path).require({"authorization": f"bearer {'x' * 16}"})
        return
    with pytest.raises(ValueError, match=said) as refused:
        Secret.read(path)
    assert str(path) in str(refused.value)
    assert not content or content not in str(refused.value).replace(str(path), "")


def test_the_end_of_the_service_cancels_what_is_under_way_and_lets_nothing_begin() -> None:
    from registry.health.refusal import Stopping
    from registry.health.runs import Runs
    from registry.health.workload import Workload

    wanted = Workload(num_clients=3, model_id="a", duration_seconds=5)

    async def stop_during(port: int) -> Any:
        runs = Runs(port, "main")
        run = runs.start(wanted)
        while not all(each.start_ns for each in run.downloads):
            await asyncio.sleep(0.01)
        await runs.close()
        with pytest.raises(Stopping):
            runs.start(wanted)
        return run.shown()

    # A service that takes connections and never answers.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        shown = asyncio.run(stop_during(silent.getsockname()[1]))
    assert shown["status"] == "cancelled"
    assert shown["results"]["outcomes"] == {"cancelled": 3}
