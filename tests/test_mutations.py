"""The table of promises fits the code, and a change is made in one place or refused."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from perflab.paths import project_root

PLACE = project_root() / "scripts" / "mutations.py"
spec = importlib.util.spec_from_file_location("mutations", PLACE)
assert spec is not None
assert spec.loader is not None
mutations = importlib.util.module_from_spec(spec)
sys.modules["mutations"] = mutations
spec.loader.exec_module(mutations)


@pytest.mark.parametrize("promise", mutations.promises(), ids=lambda each: each.promise)
def test_every_change_can_still_be_made_and_its_tests_are_there(promise) -> None:  # type: ignore[no-untyped-def]
    path, source = promise.broken()
    assert source != (project_root() / path).read_text()
    compile(source, path, "exec")
    assert promise.node_ids()


def planted(find: str, *tests: str):  # type: ignore[no-untyped-def]
    return mutations.Promise("a promise", find, "pass", tests)


@pytest.mark.parametrize("find", ["no module holds this", "from __future__ import annotations"])
def test_a_text_that_does_not_stand_once_cannot_be_changed(find: str) -> None:
    with pytest.raises(mutations.DoesNotApply, match="must stand once in perflab/"):
        planted(find).broken()


def test_a_test_that_is_gone_is_named() -> None:
    with pytest.raises(mutations.DoesNotApply, match="no test test_that_is_gone"):
        planted("", "test_that_is_gone").node_ids()
