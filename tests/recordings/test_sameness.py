"""A run is resumed only where nothing relevant changed; each change is named."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import ValidationError

from perflab.errors import ResumeRefused
from perflab.recordings import RunRecord, check_same, check_services
from perflab.trials.treatment_records import shared
from tests.support.synthetic import write_run

STACK = {
    "nodes": [
        {"name": "postgres", "service": "postgres", "settings": {"synchronous_commit": "on"}},
        {"name": "inference", "service": "inference", "settings": {"pool_size": 8}},
    ],
}
WORKLOAD = {"arrivals": {"kind": "closed", "users": 20}, "client": "lean"}
ENVIRONMENT = {
    "machine": {"cpu": "synthetic", "cores": 2, "kernel": "6.1.0"},
    "python": "3.11.9",
    "packages": {"numpy": "2.1.0", "uvloop": "0.19.0"},
}
CODE = {
    "commit": "0123456789abcdef",
    "dirty": False,
    "fingerprint": "aaaa",
    "sources": {"perflab": "p1", "services": "s1", "requirements.lock": "l1"},
}
IMAGES = {"inference": "sha256:1"}
VERSIONS = {"inference": {"fastapi": "0.115.0"}}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """Return a complete record of a run."""
    record = write_run(tmp_path_factory.mktemp("runs"), blocks=1, requests=10).record
    parts: dict[str, Any] = {}
    keys = {"stack": shared(STACK, parts), "workload": shared(WORKLOAD, parts)}
    treatments = [item.model_copy(update={"parts": keys}) for item in record.treatments]
    words = {"parts": parts, "environment": ENVIRONMENT, "code": CODE, "treatments": treatments}
    complete = record.model_copy(update={**words, "images": IMAGES, "versions": VERSIONS})
    return RunRecord.model_validate(complete.model_dump())


def now(before: RunRecord, **changes: Any) -> RunRecord:
    """Return the record of a new run of the same plan; ``a__b`` changes the value b in a."""
    words = copy.deepcopy(before.model_dump())
    for place, value in changes.items():
        *folders, name = place.split("__")
        inner = words
        for folder in folders:
            inner = inner[folder]
        inner[name] = value
    return RunRecord.model_validate(words)


def test_an_unchanged_run_may_go_on(before: RunRecord) -> None:
    check_same(before, now(before))
    check_same(before, now(before, run_id="another"))
    check_services(before, IMAGES, VERSIONS)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"code__fingerprint": "bbbb", "code__sources__services": "s2"},
            ["in services (fingerprint aaaa -> bbbb)", "go back to commit 0123456789ab"],
        ),
        ({"environment__machine__cores": 8}, ["machine.cores (2 -> 8)", "with the first machine"]),
        ({"environment__python": "3.12.1"}, ["python (3.11.9 -> 3.12.1)", "first Python again"]),
        (
            {"environment__packages__uvloop": "0.20.0"},
            ["package.uvloop (0.19.0 -> 0.20.0)", "make setup"],
        ),
        ({"environment__packages__added": "1.0"}, ["package.added (nothing -> 1.0)"]),
        ({"backend": "docker"}, ["backend (process -> docker)", "--backend"]),
        ({"network_path": "bridge"}, ["network_path (loopback -> bridge)"]),
        ({"placement__client": [0, 1]}, ["client.0 (1 -> 0)", "client.1 (nothing -> 1)"]),
    ],
)  # fmt: skip
@pytest.mark.promise
def test_a_change_is_refused_and_named_with_both_values_and_the_way_out(
    before: RunRecord, changes: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(ResumeRefused, match="parts would not be comparable") as refusal:
        check_same(before, now(before, **changes))
    for text in (*words, "start a new run"):
        assert text in str(refusal.value)


def test_another_setting_of_a_treatment_is_refused_by_its_name(before: RunRecord) -> None:
    stack = copy.deepcopy(STACK)
    stack["nodes"][1]["settings"] = {"pool_size": 16}
    parts = dict(before.parts)
    first, *others = before.treatments
    first = first.model_copy(update={"parts": {**first.parts, "stack": shared(stack, parts)}})
    with pytest.raises(ResumeRefused) as refusal:
        check_same(before, now(before, parts=parts, treatments=[first, *others]))
    place = "treatment 'synchronous_commit=on'.stack.nodes.inference.settings.pool_size (8 -> 16)"
    assert place in str(refusal.value)
    assert "synchronous_commit=off" not in str(refusal.value)


def test_what_a_service_is_made_of_is_held_against_the_record(before: RunRecord) -> None:
    with pytest.raises(ResumeRefused, match=r"inference\.fastapi \(0\.115\.0 -> 0\.116\.0\)"):
        check_services(before, IMAGES, {"inference": {"fastapi": "0.116.0"}})
    with pytest.raises(ResumeRefused, match=r"inference \(sha256:1 -> sha256:2\)"):
        check_services(before, {"inference": "sha256:2"}, VERSIONS)


def test_a_record_whose_parts_are_missing_is_refused(before: RunRecord) -> None:
    words = {**before.model_dump(), "parts": {}}
    with pytest.raises(ValidationError, match="its parts lack"):
        RunRecord.model_validate(words)
