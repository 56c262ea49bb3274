"""A real run that ends when its claim is decided, and one that is killed and finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab import laboratory
from perflab.analysis.treatments.evaluation import evaluate
from perflab.errors import RunInterrupted
from perflab.paths import runs_dir
from perflab.recordings import Run
from perflab.stacks import leftovers
from perflab.systems import experiment
from perflab.trials.client import conduct
from perflab.trials.conductor import Order
from perflab.trials.events import Event, Note, RunBegun, TrialDone

pytestmark = pytest.mark.slow
# A request costs aiohttp's client several times the CPU of the lean one: that is decided soon.
WORDS = {
    "blocks": "until_decided", "most_blocks": 16, "client": ["lean", "aiohttp"], "rate": [200],
    "duration_s": 0.3, "warmup_s": 0.1, "fresh_blocks": 0, "backend": "process", "seed": 7,
}  # fmt: skip


def test_a_run_on_the_echo_service_ends_when_its_claim_is_decided() -> None:
    chosen = experiment("client_overhead")
    plan = chosen.plan(chosen.check(WORDS))
    events: list[Event] = []
    done = 0

    def show(event: Event) -> None:
        nonlocal done
        events.append(event)
        if isinstance(event, TrialDone):
            done += 1
            if done == 9:
                raise KeyboardInterrupt

    with pytest.raises(RunInterrupted):
        conduct(Order(plan=plan, backend="process", runs=runs_dir()), show)
    (begun,) = (event for event in events if isinstance(event, RunBegun))
    half = Run(Path(begun.path))
    assert half.record.blocks == 16
    assert half.record.until_decided is not None
    assert half.record.until_decided.looks == ()

    run: Run = laboratory.run("client_overhead", {"resume": half.run_id})
    rule = run.record.until_decided
    assert run.record.state == "finished"
    assert rule is not None
    assert rule.ended in ("decided", "most blocks"), rule
    # Trials that the machine spoils cost blocks; seldom all that there may be.
    assert 8 <= run.record.blocks <= 16
    assert run.record.order == plan.order()[: run.record.blocks]
    trials = run.trials()
    current = trials[~trials["superseded"].astype(bool)]
    assert len(current) == 2 * run.record.blocks
    (found,) = evaluate(run)
    assert found.effect is not None
    if rule.ended == "decided":
        assert str(found.verdict) == "direction shown"
        assert found.effect.low > 1
        assert f"{found.effect.n} of at most 16 counted" in found.verdict.reason
    assert laboratory.run("client_overhead", {"from_run": run.run_id}).record == run.record
    assert not any(isinstance(event, Note) and "undecided" in event.text for event in events)
    assert leftovers.everything() == []
