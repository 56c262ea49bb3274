"""What the experiments on the inference service vary, and what they are compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.errors import ParameterError
from perflab.figures.points import OTHER_LOAD, SAME_LOAD
from perflab.systems import experiment
from perflab.systems.inference.published_load import published_absolutes
from perflab.trials.plan import RunPlan
from tests.support.synthetic import Planted, write_run


def plan(name: str, **given: object) -> RunPlan:
    chosen = experiment(name)
    return chosen.plan(chosen.check(given))


def settings_of(plan: RunPlan, node: str) -> list[dict[str, object]]:
    return [dict(each.stack.node(node).settings) for each in plan.treatments]


def test_on_off_and_no_write_are_in_the_same_blocks() -> None:
    found = plan("synchronous_commit")
    assert [each.levels for each in found.treatments] == [
        {"database_write": "yes", "synchronous_commit": "on"},
        {"database_write": "yes", "synchronous_commit": "off"},
        {"database_write": "no", "synchronous_commit": "none"},
    ]
    paths = [each.workload.request.path for each in found.treatments]
    assert paths == ["/inferences", "/inferences", "/inferences_no_db"]
    assert [bool(each.stack.count) for each in found.treatments] == [True, True, False]


def test_drivers_are_compared_by_default_where_the_published_ratio_can_be_an_artefact() -> None:
    found = plan("sync_vs_async")
    assert [each.name for each in found.contrasts] == [
        "async against sync, 0 ms, minconn max",
        "async against sync, 0 ms, minconn 1",
        "async against sync, 5 ms, minconn max",
    ]
    assert len(found.treatments) == 6


def test_what_is_varied_reaches_the_services() -> None:
    found = plan("sync_vs_async", workers=[4, 1], pool_meaning=["total", "per_worker"])
    pools = {
        each.name: (node["workers"], node["pool_size"], node["pool_minconn"])
        for each, node in zip(found.contrasts, settings_of(found, "inference")[::2], strict=True)
    }
    assert pools == {
        "async against sync, 0 ms, minconn max": (4, 50, "max"),
        "async against sync, 0 ms, minconn max, pool per worker": (4, 200, "max"),
        "async against sync, 0 ms, minconn max, 1 worker": (1, 50, "max"),
        "async against sync, 0 ms, minconn 1": (4, 50, "1"),
        "async against sync, 5 ms, minconn max": (4, 50, "max"),
    }


def test_what_a_pool_of_one_worker_means_is_not_measured_twice() -> None:
    found = plan("sync_vs_async", workers=1, pool_meaning=["total", "per_worker"])
    assert len(found.treatments) == len(plan("sync_vs_async", workers=1).treatments)


def test_the_name_of_a_contrast_does_not_hang_on_what_else_is_compared() -> None:
    alone = plan("sync_vs_async", workers=1, pool_minconn="1", round_trip_ms=5)
    every = plan("sync_vs_async", workers=[1, 4], pool_minconn="1,max", round_trip_ms="5,0")
    assert alone.contrasts[0].name == "async against sync, 5 ms, minconn 1, 1 worker"
    assert alone.contrasts[0].name in {each.name for each in every.contrasts}


def test_a_pool_smaller_than_the_workers_is_refused_where_it_is_shared() -> None:
    with pytest.raises(ParameterError, match="less than workers = 4"):
        plan("sync_vs_async", workers=[1, 4], pool_size=2)
    assert plan("sync_vs_async", workers=4, pool_size=2, pool_meaning="per_worker")


def test_the_map_plants_its_delay_before_every_commit() -> None:
    found = plan("flush_map", workers=4, round_trip_ms=0, commit_delay_us=[0, 3000])
    delays = [
        (node["synchronous_commit"], node["commit_delay_us"], node["commit_siblings"])
        for node in settings_of(found, "postgres")
    ]
    on = ("on", 0, 5)
    assert delays == [("off", 0, 5), on, on, ("on", 3000, 0), ("on", 3000, 0)]


def durability(folder: Path, **parameters: object):
    treatments = [
        Planted({"database_write": "yes", "synchronous_commit": "on"}),
        Planted({"database_write": "yes", "synchronous_commit": "off"}),
        Planted({"database_write": "no", "synchronous_commit": "none"}),
    ]
    run = write_run(folder, treatments=treatments, blocks=1, requests=30, contrasts=[])
    known = {"requests": 1000, "concurrency": 50, "connection": "per_request"}
    changed = {"parameters": {**known, **parameters}}
    run.record = run.record.model_copy(update=changed)
    return run


def test_published_absolutes_stand_beside_the_treatments_they_are_of(tmp_path: Path) -> None:
    found = published_absolutes(durability(tmp_path), "throughput_rps")
    assert list(found["value"]) == [320, 511, 1087]
    assert set(found["load"]) == {SAME_LOAD}
    # No latency was published for off.
    assert list(published_absolutes(durability(tmp_path / "ms"), "mean_ms")["value"]) == [156, 46]


@pytest.mark.parametrize("changed", [{"requests": 400}, {"connection": "keep_alive"}])
def test_another_load_is_said(tmp_path: Path, changed: dict[str, object]) -> None:
    found = published_absolutes(durability(tmp_path, **changed), "throughput_rps")
    assert set(found["load"]) == {OTHER_LOAD}


@pytest.mark.parametrize("changed", [{"driver": "asyncpg"}, {"round_trip_ms": 5.0}])
def test_what_was_not_published_has_no_mark(tmp_path: Path, changed: dict[str, object]) -> None:
    assert published_absolutes(durability(tmp_path, **changed), "throughput_rps").empty


def test_the_compiled_runtime_is_compared_with_both_others_where_it_is_asked_for() -> None:
    usual, asked = (
        plan("inference_runtime"),
        plan("inference_runtime", runtime="sklearn,onnx,compiled"),
    )
    names = [each.name for each in asked.contrasts if "compiled" in each.name]
    assert names == [
        "compiled against sklearn with write",
        "compiled against onnx with write",
        "compiled against onnx, CPU of a prediction",
    ]
    # A plain process needs a compiler for it: nobody gets it without asking.
    assert usual.factors["runtime"] == ("sklearn", "onnx")
    assert not [each.name for each in usual.contrasts if "compiled" in each.name]
    runtimes = {node["runtime"] for node in settings_of(asked, "inference")}
    assert runtimes == {"sklearn", "onnx", "compiled"}


def test_without_a_runtime_there_is_no_contrast_on_it() -> None:
    found = plan("inference_runtime", runtime=["onnx"])
    assert [each.name for each in found.contrasts] == ["no write against write (onnx)"]
    with pytest.raises(ParameterError, match="named twice"):
        plan("inference_runtime", runtime=["onnx", "onnx"])
