"""The table of promises fits the code: each change is made in one place, and its tests exist."""

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
