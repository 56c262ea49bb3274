"""Parameters are checked before anything starts, and every problem is told at once."""

from __future__ import annotations

import math
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from perflab.errors import ParameterError
from perflab.load.workload import OpenLoop
from perflab.load.workload.schedule import instants
from perflab.parameters import as_text, check, from_text, parse_assignments
from perflab.paths import project_root
from perflab.recordings import RunRecord
from perflab.recordings.reference import reference_ids, reference_run
from perflab.recordings.runs import question_of
from perflab.reports.methods import command
from perflab.stacks.plan import settle
from perflab.systems import experiment, names
from perflab.trials.plan import Order
from perflab.trials.run_parameters import OF_THE_CALL
from tests.support.examples import examples
from tests.support.synthetic import write_run


@pytest.mark.parametrize("text", ["0,5", "[0, 5]", [0, 5], (0.0, 5.0)])
def test_list_parameters_may_be_typed_in_several_ways(text: object) -> None:
    assert experiment("sync_vs_async").check({"round_trip_ms": text}).round_trip_ms == (0.0, 5.0)


def test_a_number_that_a_preset_gives_is_one_level() -> None:
    parameters = experiment("sync_vs_async").check({"preset": "published"})
    assert (parameters.workers, parameters.round_trip_ms) == ((4,), (0.0,))


def test_assignments_without_a_value_are_refused() -> None:
    with pytest.raises(ParameterError, match="not of the form key=value"):
        parse_assignments(["blocks"])


LEVELS = tuple[Literal["max", "1"], ...]
KINDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, st.text()),
    (int, st.integers()),
    (bool, st.booleans()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (float | None, st.none() | st.floats(allow_nan=False, allow_infinity=False)),
    (int | Literal["until_decided"], st.integers() | st.just("until_decided")),
    (tuple[float, ...], st.lists(st.floats(allow_nan=False, allow_infinity=False))),
    (tuple[str, ...], st.lists(st.text(alphabet='a,[ =:/1."é'), max_size=3)),
    (LEVELS, st.lists(st.sampled_from(["max", "1"]))),
]


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=lambda part: str(part)[:40])
@given(data=st.data())
def test_a_value_that_is_typed_as_the_lab_writes_it_is_the_same_again(
    kind: Any, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value = data.draw(values)
    assert TypeAdapter(kind).validate_python(from_text(kind, as_text(value))) == (
        tuple(value) if isinstance(value, list) else value
    )


@given(st.text())
def test_any_text_can_be_read_as_any_kind(text: str) -> None:
    for kind, _ in KINDS:
        from_text(kind, text)


TYPED = [
    ("custom_service", "body", '{"n": 1}', '{"n": 1}'),
    ("custom_service", "body", "123", "123"),
    ("custom_service", "expect_body", "true", "true"),
    ("custom_service", "body", "", ""),
    ("custom_service", "headers", "Accept: text/html, text/plain",
     ("Accept: text/html, text/plain",)),
    ("custom_service", "headers", '["A: 1", "B: 2, 3"]', ("A: 1", "B: 2, 3")),
    ("custom_service", "env", "MODE=a,b", ("MODE=a,b",)),
    ("custom_service", "env", "MODE, LEVEL", ("MODE", "LEVEL")),
    ("custom_service", "env", '["MODE=a,b", "LEVEL"]', ("MODE=a,b", "LEVEL")),
    ("sync_vs_async", "pool_minconn", "max,1", ("max", "1")),
    ("sync_vs_async", "pool_minconn", ["max", 1], ("max", "1")),
    ("sync_vs_async", "pool_minconn", '["max", 1]', ("max", "1")),
    ("sync_vs_async", "from_run", "12e345", "12e345"),
    ("sync_vs_async", "from_run", "", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameter", "given", "meant"), TYPED)
def test_a_value_means_what_the_type_of_its_parameter_says(
    name: str, parameter: str, given: object, meant: object
) -> None:
    assert getattr(check(experiment(name).parameters, {parameter: given}, name), parameter) == meant


def test_a_server_in_an_image_is_one_need_though_its_table_has_commas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("perflab.systems.custom.needs.docker_client", object)
    need = 'web={"image": "a:b", "port": 80}'
    given = check(experiment("custom_service").parameters, {"needs": need}, "duel")
    assert given.model_dump()["needs"] == (need,)


def test_a_number_where_text_belongs_is_refused_with_the_way_out() -> None:
    with pytest.raises(ParameterError, match=r"must be text; write it in quotes \(papermill: -r"):
        experiment("sync_vs_async").check({"from_run": math.inf})


def asked_again(record: RunRecord) -> dict[str, Any]:
    """Return the parameters of the line by which a run is repeated."""
    words = shlex.split(command(record))
    assert words[:5] == ["perflab", "run", record.experiment, "--backend", record.backend]
    typed = parse_assignments(after for before, after in pairwise(words) if before == "-p")
    return check(experiment(record.experiment).parameters, typed, "again").model_dump(mode="json")


@pytest.mark.parametrize("name", names())
def test_the_line_that_repeats_a_run_has_the_parameters_of_the_run(name: str, tmp_path) -> None:
    chosen = experiment(name)
    parameters = chosen.plan(chosen.check({"seed": 1})).parameters
    record = write_run(tmp_path, blocks=1).record
    again = asked_again(
        record.model_copy(update={"experiment": name, "parameters": dict(parameters)})
    )
    assert {key: again[key] for key in parameters if key != "backend"} == {
        key: value for key, value in parameters.items() if key != "backend"
    }


@pytest.mark.parametrize(
    "env", [("MODE",), ("MODE", "LEVEL"), ("MODE=a,b",), ("MODE=a,b", "LEVEL")], ids=as_text
)
def test_the_line_that_repeats_a_duel_has_its_variables(env: tuple[str, ...]) -> None:
    model = experiment("custom_service").parameters
    assert check(model, {"env": as_text(env)}, "again").model_dump()["env"] == env


@pytest.mark.parametrize("run_id", reference_ids())
def test_the_line_of_a_shipped_run_asks_its_question_again(
    run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFLAB_REFERENCE", str(project_root() / "data" / "reference"))
    shipped = reference_run(run_id).record
    again = asked_again(shipped)
    record = shipped.model_copy(
        update={"parameters": {key: again[key] for key in shipped.parameters}}
    )
    assert question_of(record) == question_of(shipped)


REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("sync_vs_async", {"round_trip_ms": -5}, "round_trip_ms = -5"),
    ("sync_vs_async", {"round_trip_ms": [0, 1001]}, "must be 1000 or less"),
    ("sync_vs_async", {"round_trip_ms": []}, "at least 1 item"),
    ("sync_vs_async", {"round_trip_ms": [5, 5.0]}, "5.0 is named twice"),
    ("sync_vs_async", {"pool_minconn": ["1", 1]}, "1 is named twice"),
    ("sync_vs_async", {"round_trip_ms": math.nan}, "finite number"),
    ("synchronous_commit", {"blocks": True}, "true and false mean nothing"),
    ("synchronous_commit", {"seed": 10**30}, "seed = 1000"),
    ("synchronous_commit", {"wait_s": 1e300}, "wait_s"),
    ("synchronous_commit", {"fresh_blocks": 10**9}, "fresh_blocks"),
    ("client_overhead", {"rate": [-1]}, "rate = -1"),
    ("client_overhead", {"rate": [0]}, "must be above 0"),
    ("client_overhead", {"rate": [2e6]}, "must be 1000000 or less"),
    ("client_overhead", {"rate": [5]}, "fewer than 10 requests"),
    ("client_overhead", {"delay_ms": 500, "timeout_s": 0.5}, "every request would fail"),
    ("lab_check", {"work": 10_000_000}, r"service 'echo': work = 10500000 must be at most"),
    ("lab_check", {"work": 100, "planted": [1.001]}, "would be 1 in whole rounds"),
    ("lab_check", {"planted": [1.05, 1.050000000000001]}, "cannot be told apart"),
    ("lab_check", {"overload_rps": 40}, "fewer than 10 requests"),
    ("chat_ladder", {"rungs": ["best_100000"]}, "at most 99999"),
    ("chat_ladder", {"rungs": ["best_" + "9" * 5000]}, "no rung"),
    ("latency_cpu", {"users": 10_000, "join_s": 60}, "duration_s"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "values", "words"), REFUSED)
def test_what_would_fail_after_the_start_is_refused_before_it(
    name: str, values: dict[str, object], words: str
) -> None:
    chosen = experiment(name)
    with pytest.raises(ParameterError, match=words):
        chosen.plan(chosen.check(values))


def values_for(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values inside, on and just beyond what a parameter's schema allows."""
    if "anyOf" in schema:
        return st.one_of([values_for(each) for each in schema["anyOf"]])
    if "$ref" in schema:
        requests = [
            {"name": "list", "path": "/"},
            {"name": "create", "body": "{uuid}", "path": "/"},
        ]
        return st.sampled_from([*requests, {"name": "list"}])
    if schema.get("type") == "array":
        items = schema.get("items", {})
        return st.lists(values_for(items), max_size=3)
    if "enum" in schema or "const" in schema:
        return st.sampled_from([*schema.get("enum", []), schema.get("const", "other")])
    if schema.get("type") == "null":
        return st.none()
    if schema.get("type") == "string":
        return st.sampled_from(["json", "best", "best_800", "no_deflate_99999", "best_0"])
    return numbers_for(schema)


def numbers_for(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", 1e6)
    edges = st.sampled_from([low, high, low - 1, high + 1, -5, 0, 1e-9, math.nan, math.inf])
    inside: st.SearchStrategy[Any] = st.integers(math.ceil(low), math.floor(high))
    if schema["type"] == "number":
        inside = inside | st.floats(low, high)
    # Small ones are what people choose, and what combinations are decided by.
    return st.one_of(inside, st.integers(math.ceil(low), math.ceil(low) + 10), edges)


@pytest.mark.parametrize("name", names())
@given(data=st.data())
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_accepted_can_be_conducted(name: str, data: st.DataObject) -> None:
    chosen = experiment(name)
    schemas = chosen.parameters.model_json_schema()["properties"]
    asked = {key: values_for(schemas[key]) for key in schemas if key not in OF_THE_CALL}
    values = data.draw(st.fixed_dictionaries({}, optional=asked))
    try:
        checked = chosen.check(values)
        plan = chosen.plan(checked)
    except ParameterError:
        return
    order = Order(plan=plan, backend=checked.backend, runs=Path("runs"))
    # What the conductor does with it before it measures.
    plan = Order.model_validate_json(order.model_dump_json()).plan
    residency = settle({each.name: each.stack for each in plan.treatments})
    assert len(residency.serving) == len(plan.treatments)
    assert set(plan.order()[0]) == set(residency.serving)
    for each in plan.treatments:
        arrivals = each.workload.arrivals
        if isinstance(arrivals, OpenLoop) and arrivals.duration_s * arrivals.stages[0].rate < 1e5:
            planned = np.concatenate(list(instants(arrivals)))
            assert (planned >= arrivals.warmup_s * 1e9).sum() >= 9


@pytest.mark.parametrize(
    ("name", "given", "services"),
    [
        ("inference_runtime", {"runtime": "sklearn,onnx,compiled"}, 3),
        ("sync_vs_async", {"pool_minconn": "max,1", "workers": "1,2"}, 3),
    ],
)
def test_the_database_has_room_for_the_pools_of_all_services_side_by_side(
    name: str, given: dict[str, str], services: int
) -> None:
    plan = experiment(name).plan(experiment(name).check({**given, "pool_size": 40}))
    residents = settle({each.name: each.stack for each in plan.treatments}).residents
    assert sum(each.service == "inference" for each in residents) == services
    (server,) = [each for each in residents if each.service == "postgres"]
    # Each has a pool for each of two drivers.
    assert int(server.settings["max_connections"]) >= services * 2 * 40


@pytest.mark.parametrize("levels", ["x,y,z", [{}, "x"], {"a": 1}, ["x", None, [1]]])
def test_a_list_of_a_wrong_type_says_one_thing(levels: object) -> None:
    for name, parameter in (("sync_vs_async", "round_trip_ms"), ("profile", "codec")):
        with pytest.raises(ParameterError) as caught:
            experiment(name).check({parameter: levels})
        assert len(caught.value.problems) == 1
        assert caught.value.problems[0].startswith(f"{parameter} = ")


def test_a_list_that_is_given_as_nothing_is_empty() -> None:
    own = experiment("registry_downloads")
    assert own.check(parse_assignments(["rungs="])).model_dump()["rungs"] == ()
    with pytest.raises(ParameterError, match="sets"):
        own.check(parse_assignments(["sets="]))
