"""Settings of a running database, as a service's pool sees them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from perflab.errors import SettingRefused
from perflab.stacks import settings
from perflab.stacks.plan import StackPlan
from perflab.systems.inference.stacks import InferenceParameters, stack

OFF = {"synchronous_commit": "off"}


def agreed(monkeypatch: pytest.MonkeyPatch, answers: list[str]) -> dict[str, Any]:
    """Return what is agreed where the pool gives these answers, the last one for ever."""
    plan: StackPlan = stack(
        InferenceParameters(), pool_size=50, workers=1, synchronous_commit="off"
    )
    server = SimpleNamespace(
        launch=SimpleNamespace(spec=SimpleNamespace(with_defaults=lambda *_: OFF))
    )

    def reported(node: Any, *_: Any) -> dict[str, Any]:
        if node.name != "inference":
            return {}
        seen = answers.pop(0) if len(answers) > 1 else answers[0]
        return {"database": {"synchronous_commit": seen}}

    monkeypatch.setattr(settings, "apply", lambda *_: None)
    monkeypatch.setattr(settings, "reported", reported)
    instances = {node.name: server for node in plan.nodes}
    return settings.agree(plan, instances, lambda _: None)


@pytest.mark.promise
def test_a_pool_that_reads_new_settings_late_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = agreed(monkeypatch, ["on", "on", "off"])
    assert shown["inference"] == {"database": OFF}


def test_a_pool_that_keeps_other_settings_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "RELOADED_WITHIN_S", 0.1)
    with pytest.raises(SettingRefused, match=r"own pool.*'on', wanted 'off'"):
        agreed(monkeypatch, ["on"])
