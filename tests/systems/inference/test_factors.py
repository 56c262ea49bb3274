"""The factors of the experiments on the inference service, and their published results."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from perflab.errors import ParameterError
from perflab.reports.figures import views_of
from perflab.trials.plan import RunPlan
from tests.golden.recordings import CASES, Case, write_recording
from tests.systems.planned import plan_of


def settings_of(plan: RunPlan, node: str) -> list[dict[str, object]]:
    return [dict(treatment.stack.node(node).settings) for treatment in plan.treatments]


def test_the_levels_of_factors_reach_the_services() -> None:
    run_plan = plan_of("sync_vs_async", workers=[4, 1])
    pools = {
        contrast.name: (node["workers"], node["pool_size"], node["pool_minconn"])
        for contrast, node in zip(
            run_plan.contrasts, settings_of(run_plan, "inference")[::2], strict=True
        )
    }
    assert pools == {
        "async against sync, 0 ms, minconn max": (4, 50, "max"),
        "async against sync, 0 ms, minconn max, 1 worker": (1, 50, "max"),
        "async against sync, 0 ms, minconn 1": (4, 50, "1"),
        "async against sync, 5 ms, minconn max": (4, 50, "max"),
    }


def test_a_pool_smaller_than_the_workers_is_refused() -> None:
    with pytest.raises(ParameterError, match="less than workers = 4"):
        plan_of("sync_vs_async", workers=[1, 4], pool_size=2)


def test_the_map_makes_flushes_longer_on_both_sides_and_holds_each_against_the_study() -> None:
    run_plan = plan_of("flush_map", workers=4, pool_size=4, flush_ms=[0, 2.5])
    flushes = [
        (node["synchronous_commit"], node["flush_us"]) for node in settings_of(run_plan, "postgres")
    ]
    assert flushes == [("on", 0), ("off", 0), ("on", 2500), ("off", 2500)]
    assert {node["pool_size"] for node in settings_of(run_plan, "inference")} == {4}
    assert {contrast.published_ratio for contrast in run_plan.contrasts} == {511 / 320}
    fewer = plan_of("flush_map", flush_ms=0, pool_size=1, concurrency=10)
    assert [contrast.published_ratio for contrast in fewer.contrasts] == [None]


def test_rates_are_offered_whether_or_not_answers_come(tmp_path: Path) -> None:
    run_plan = plan_of("synchronous_commit", rate="400,100", requests=500)
    loads = [treatment.workload.arrivals.model_dump() for treatment in run_plan.treatments]
    assert [load["stages"][0]["rate"] for load in loads] == [100, 400] * 3
    assert [load["stages"][0]["duration_s"] - load["warmup_s"] for load in loads] == [5, 1.25] * 3
    assert plan_of("synchronous_commit", rate=None).contrasts[0].name == "off against on"
    asked = [contrast.name for contrast in run_plan.contrasts]
    assert asked == ["off against on at 100/s", "off against on at 400/s"]
    with patch.dict(CASES, {"rates": Case("synchronous_commit", parameters={"rate": (100, 400)})}):
        run = write_recording(tmp_path, "rates/claimed")
    views = {view.name: view for view in views_of(run)}
    table = views["latency_rate"].table(run)
    typical = table[(table["what"] != "trial") & (table["response"] == "p50_ms")]
    assert sorted(set(typical["series"])) == [
        "no database write", "synchronous_commit=off", "synchronous_commit=on",
    ]  # fmt: skip
    assert (typical["rate"].value_counts() == 3).all()
    assert (typical["low"] <= typical["value"]).all()


def test_the_compiled_runtime_is_compared_with_both_others_on_request() -> None:
    default = plan_of("inference_runtime")
    with_compiled = plan_of("inference_runtime", runtime="sklearn,onnx,compiled")
    names = [contrast.name for contrast in with_compiled.contrasts if "compiled" in contrast.name]
    assert names == [
        "compiled against sklearn with write",
        "compiled against onnx with write",
        "compiled against onnx, CPU of a prediction",
    ]
    # A plain process needs a compiler for this runtime, so it is not a default.
    assert default.factors["runtime"] == ("sklearn", "onnx")
    runtimes = {node["runtime"] for node in settings_of(with_compiled, "inference")}
    assert runtimes == {"sklearn", "onnx", "compiled"}


def test_without_a_runtime_there_is_no_contrast_on_it() -> None:
    run_plan = plan_of("inference_runtime", runtime=["onnx"])
    assert [contrast.name for contrast in run_plan.contrasts] == ["no write against write (onnx)"]


def sizes(name: str, **changes: object) -> dict[str, float | None]:
    contrasts = plan_of(name, **changes).contrasts
    return {contrast.name: contrast.published_ratio for contrast in contrasts}


def warnings(name: str, **changes: object) -> str:
    return " ".join(map(str, plan_of(name, **changes).warnings))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workers": 2}, "workers is 2 (not published, by default: 4)"),
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


def test_the_durability_study_states_no_workers_so_one_has_its_sizes_too() -> None:
    assert sizes("synchronous_commit", workers=1) == sizes("synchronous_commit")
    assert "published sizes" not in warnings("synchronous_commit", workers=1)


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
