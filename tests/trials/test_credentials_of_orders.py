"""The order for the conductor holds the values of references; the plan and all files do not."""

from __future__ import annotations

import stat
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perflab import credentials, systems
from perflab.analysis.evaluation import evaluate
from perflab.errors import ParameterError
from perflab.paths import variants_dir
from perflab.recordings import Run
from perflab.recordings.store import as_json
from perflab.reports.methods import reproduce
from perflab.reports.section import page_text, section_text
from perflab.stacks.spec import load_service, render
from perflab.trials.arguments import asked_for, order_of
from perflab.trials.conductor import Conductor
from perflab.trials.progress import Event, Note, RunBegun, TrialDone, parse
from tests.golden.recordings import write_recording

LITERAL, WORD = "Bearer literal-Zz11", "word-Yy22"
GIVEN: dict[str, Any] = {
    "headers": [f"Authorization: {LITERAL}", "X-Tenant: 5"],
    "variants": [
        f"old=command:env DB_PASSWORD={WORD} python3 app.py {{port}}",
        "new=command:python3 app.py {port}",
    ],
    "env": ["OURS"],
}


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_kept", {})
    monkeypatch.setattr(credentials, "_known", {})
    monkeypatch.setattr(credentials, "_names", {})
    monkeypatch.setenv("OURS", "ours-Xx33")


@pytest.fixture
def chosen():
    return systems.experiment("custom_service")


def test_no_credential_reaches_the_plan_of_a_duel_or_the_description_of_a_service(chosen) -> None:
    order = order_of(chosen, asked_for(chosen, GIVEN))
    assert order.credentials == {"AUTHORIZATION": LITERAL, "DB_PASSWORD": WORD, "OURS": "ours-Xx33"}
    plan, files = order.plan.model_dump_json(), list(variants_dir().rglob("service.toml"))
    written = plan + "".join(file.read_text() for file in files) + repr(order)
    assert [text for text in order.credentials.values() if text in written] == []
    assert "Authorization: {env:AUTHORIZATION}" in plan
    assert [stat.S_IMODE(file.parent.stat().st_mode) for file in files] == [0o700] * len(files)


def test_a_service_gets_its_variables_by_its_environment_and_not_by_arguments(chosen) -> None:
    plan = order_of(chosen, asked_for(chosen, GIVEN)).plan
    spec = load_service(plan.treatments[0].stack.nodes[0].service)
    assert not any("env:" in word for word in spec.command)
    values = {
        name: render(text, {"port": 1, "host": ""}) for name, text in spec.environment.items()
    }
    assert values == {"PORT": "1", "HOST": "", "OURS": "ours-Xx33", "DB_PASSWORD": WORD}


def test_another_credential_makes_no_other_service(chosen) -> None:
    def names(word: str) -> list[str]:
        credentials._kept.clear()
        given = {**GIVEN, "variants": [text.replace(WORD, word) for text in GIVEN["variants"]]}
        plan = order_of(chosen, asked_for(chosen, given)).plan
        return [node.service for item in plan.treatments for node in item.stack.nodes]

    assert names("one") == names("another")


def test_a_variable_that_is_not_set_stops_a_duel_before_it_begins(chosen) -> None:
    given = {**GIVEN, "headers": ["Authorization: env:ABSENT_HERE"]}
    with pytest.raises(ParameterError) as caught:
        order_of(chosen, asked_for(chosen, given))
    assert "ABSENT_HERE is not set" in str(caught.value)
    assert "needed by headers Authorization" in str(caught.value)
    assert WORD not in str(caught.value)


@pytest.fixture
def recorded(chosen, tmp_path: Path) -> Run:
    """A run of the duel whose header was a literal, as a new process finds it."""
    plan = order_of(chosen, asked_for(chosen, {**GIVEN, "seed": 3})).plan
    run = write_recording(tmp_path, "custom_service/claimed")
    record = run.record.model_copy(update={"parameters": dict(plan.parameters)})
    (run.path / "run.json").write_bytes(as_json(record))
    credentials._kept.clear()
    credentials._known.clear()
    return Run(run.path)


def test_a_resumed_run_asks_for_what_it_needs_and_takes_it_from_another_variable(
    chosen, recorded: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ParameterError) as caught:
        order_of(chosen, asked_for(chosen, {"resume": str(recorded.path)}))
    assert all(
        f"{name} is not set" in str(caught.value) for name in ("AUTHORIZATION", "DB_PASSWORD")
    )
    monkeypatch.setenv("DB_PASSWORD", "of now")
    monkeypatch.setenv("OTHER", "Bearer other")
    headers = ["Authorization: env:OTHER", "X-Tenant: 5"]
    order = order_of(chosen, asked_for(chosen, {"resume": str(recorded.path), "headers": headers}))
    assert order.credentials["AUTHORIZATION"] == "Bearer other"
    assert order.credentials["DB_PASSWORD"] == "of now"


@pytest.mark.promise
def test_a_section_names_the_folder_of_a_service_and_no_place_of_the_machine(
    recorded: Run,
) -> None:
    place = "/home/somebody/code/shop"
    parameters = {
        **recorded.record.parameters, "folder": place,
        "variants": [
            f"old=git:{place}@{'a' * 40}", f"new=git:/data/elsewhere/other@{'b' * 40}",
            f"c=command:{place}/bin/app --log /home/somebody/log.txt {{port}}",
        ],
    }  # fmt: skip
    record = recorded.record.model_copy(
        update={"parameters": parameters, "reason": f"{place}/app.py: no such file"}
    )
    recorded.record = record
    findings = evaluate(recorded)
    for text in (section_text(recorded, findings), page_text(recorded, findings)):
        for part in ("/home/", "/data/elsewhere", str(Path.home()) + "/", str(Path.cwd())):
            assert part not in text
        assert "shop" in text
    lines = reproduce(record)
    assert "git checkout" not in lines
    assert "cd shop\n" in lines
    assert "folder=." in lines
    assert f"old=git:.@{'a' * 40}" in lines
    assert f"new=git:other@{'b' * 40}" in lines


def emitted(*events: Event) -> list[Event]:
    written = StringIO()
    nobody: Any = SimpleNamespace()
    conductor = Conductor(nobody, nobody, written)
    for event in events:
        conductor.emit(event)
    return [parse(line.encode()) for line in written.getvalue().splitlines()]


@pytest.mark.promise
def test_an_event_stays_one_where_a_number_is_a_credential() -> None:
    credentials.keep("1000", "PIN")
    done = TrialDone(trial_id="a", state="valid", throughput_rps=1000)
    assert emitted(Note(text="the pin is 1000"), done) == [Note(text="the pin is {env:PIN}"), done]


@pytest.mark.promise
def test_a_run_is_found_where_a_folder_has_the_name_that_a_password_has() -> None:
    credentials.keep("shop", "DB_PASSWORD")
    begun = RunBegun(run_id="20260102-a", path="/home/me/code/shop/runs/a", backend="process")
    assert emitted(begun, Note(text="it is shop")) == [
        begun, Note(text="it is {env:DB_PASSWORD}"),
    ]  # fmt: skip
