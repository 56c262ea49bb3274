"""A session with fake services and load workers, and a real recording; it may end once decided."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from perflab.analysis.noise import RESTED, doubt
from perflab.errors import LoadError, RunInterrupted, StackError
from perflab.host.placing import placement
from perflab.load.workers.generator import Progress
from perflab.load.workload import ClosedLoop, Workload
from perflab.recordings import Contrast, Run, RunRecord, UntilDecided, check_same
from perflab.recordings.design import Design
from perflab.recordings.published_results import Direction
from perflab.stacks.spec import load_service
from perflab.statistics.interim_analysis import PlannedLook, planned
from perflab.systems import names
from perflab.trials.conductor import new_record
from perflab.trials.progress import LoadProgress, Note, TrialBegun, TrialDone
from perflab.trials.treatment_records import treatment_records
from perflab.trials.trial import TrialTables
from tests.systems.planned import plan_of
from tests.trials.fakes import BACKEND, REQUESTS, Residents, Told, plan


@pytest.mark.promise
def test_every_trial_is_measured_in_the_plans_order_committed_and_valid(tmp_path: Path) -> None:
    session = Told(tmp_path, blocks=3)
    run = session.go()
    trials = run.trials()
    planned = [
        (block, position, name)
        for block, order in enumerate(session.plan.order())
        for position, name in enumerate(order)
    ]
    columns = [trials[name] for name in ("block", "position", "treatment")]
    assert list(zip(*columns, strict=True)) == planned
    assert trials["state"].tolist() == ["valid"] * 6
    assert len(run.valid_trials()) == 6
    assert [event.treatment for event in session.of(TrialBegun)] == [name for *_, name in planned]
    assert [event.state for event in session.of(TrialDone)] == ["valid"] * 6
    # What is left is told once each of the two treatments has been measured.
    assert [event.left_s is None for event in session.of(TrialDone)] == [True] + [False] * 5
    assert run.problems == []


@pytest.mark.parametrize(("every", "restarts"), [(0, 0), (1, 3), (2, 1)])
@pytest.mark.promise
def test_services_start_afresh_before_every_so_many_blocks(
    tmp_path: Path, every: int, restarts: int
) -> None:
    session = Told(tmp_path, blocks=4, fresh_blocks=every)
    session.go()
    steps = [note for note in session.residents.notes if note in ("stop", "start", "load")]
    assert steps.count("stop") == steps.count("start") == restarts
    if every == 1:
        assert steps == ["load", "load", *["stop", "start", "load", "load"] * 3]


def test_every_trial_tells_the_start_of_its_services(tmp_path: Path) -> None:
    session = Told(tmp_path, blocks=5, fresh_blocks=2)
    session.go(0, 1, 2)
    # A resumed session starts them, too, and numbers go on.
    run = session.go(3, 4)
    starts = run.trials().groupby("block")["start"].unique().map(list)
    assert starts.tolist() == [[0], [0], [4], [6], [8]]


def test_a_load_at_the_start_goes_to_each_treatment_once_after_every_start(tmp_path: Path) -> None:
    usual = plan(blocks=4, fresh_blocks=2)
    treatments = [
        item.model_copy(update={"at_start": item.workload.model_copy()})
        for item in usual.treatments
    ]
    session = Told(tmp_path, of=usual.model_copy(update={"treatments": tuple(treatments)}))
    run = session.go()
    notes = [note.split()[0] for note in session.residents.notes]
    steps = [note for note in notes if note in ("stop", "reset", "load")]
    with_start, without = ["load", "reset", "load"], ["reset", "load"]
    of_two_blocks = [*with_start * 2, *without * 2]
    assert steps == [*of_two_blocks, "stop", *of_two_blocks]
    # It is in no trial.
    assert run.trials()["requests"].tolist() == [REQUESTS] * 8


def test_the_live_rate_is_that_of_the_load_without_what_comes_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, before_s = Told(tmp_path, blocks=1), 0.3
    monkeypatch.setattr(session.residents, "reset", lambda _: time.sleep(before_s))
    session.go()
    first, last = session.of(LoadProgress)[:2]
    assert first.rate_rps is None
    assert last.rate_rps is not None
    assert last.rate_rps >= REQUESTS / (last.seconds - before_s)


def test_only_the_first_of_the_remaining_blocks_is_another_attempt(tmp_path: Path) -> None:
    trials = Told(tmp_path, blocks=4).go(2, 3, attempt=1).trials()
    assert trials["trial_id"].tolist() == [
        "b002-p00-a1", "b002-p01-a1", "b003-p00-a0", "b003-p01-a0",
    ]  # fmt: skip


def test_services_that_fail_are_started_afresh_three_times_and_no_more(tmp_path: Path) -> None:
    session = Told(tmp_path, blocks=9, fails=LoadError("a load worker died"))
    with pytest.raises(StackError, match=r"4 trials failed, although .* afresh 3 times"):
        session.go()
    assert session.residents.notes.count("start") == 3
    run = Run(session.writer.path)
    assert run.trials()["state"].tolist() == ["failed"] * 4
    assert len(session.of(Note)) == 3


def test_an_interruption_between_trials_keeps_those_that_are_committed(tmp_path: Path) -> None:
    session = Told(tmp_path)
    session.bench.interrupted = lambda: "it was asked to" if session.of(TrialDone) else ""
    with pytest.raises(RunInterrupted):
        session.go()
    assert len(Run(session.writer.path).trials()) == 1


@pytest.mark.parametrize("name", names())
def test_every_experiment_is_recorded_with_all_settings_and_read_back(name: str) -> None:
    plan = plan_of(name, seed=1)
    assert plan.contrasts
    begun = new_record(plan, BACKEND, placement())
    # Otherwise nobody could resume a run of it.
    check_same(RunRecord.model_validate_json(begun.model_dump_json()), begun)
    records, parts = treatment_records(plan.treatments)
    for treatment, written in zip(plan.treatments, records, strict=True):
        stack = parts[written.parts["stack"]]
        for node in stack["nodes"]:
            assert set(node["settings"]) == set(load_service(node["service"]).settings)
        for node in treatment.stack.nodes:
            shown = next(item for item in stack["nodes"] if item["name"] == node.name)
            assert node.settings.items() <= shown["settings"].items()
        assert Workload.model_validate(parts[written.parts["workload"]]) == treatment.workload


def test_the_settings_that_services_report_are_recorded_for_every_treatment(tmp_path: Path) -> None:
    run = Told(tmp_path, Residents(says={"workers": 2, "pool_per_worker": 4})).go()
    assert run.record.reported_by("a") == {"echo": {"workers": 2, "pool_per_worker": 4}}
    assert run.record.reported_by("a") == run.record.reported_by("b")
    assert set(run.trials()["state"]) == {"valid"}
    assert json.loads((run.path / "run.json").read_text())["reported"].keys() == {"a", "b"}


def test_a_trial_whose_services_report_other_settings_is_refused(tmp_path: Path) -> None:
    says = {"workers": 2, "pool_per_worker": 4}
    residents = Residents(says=says)
    activate = residents.activate
    activated: list[str] = []

    def changing(name: str) -> None:
        activated.append(name)
        if len(activated) == 3:
            says["pool_per_worker"] = 3
        activate(name)

    residents.activate = changing  # type: ignore[method-assign]
    residents.says = says
    trials = Told(tmp_path, residents).go().trials()
    assert list(trials["state"]) == ["valid", "valid", "invalid", "invalid"]
    for reasons in trials["reasons"][2:]:
        assert [reason.code for reason in reasons] == ["stack.settings"]
        assert "echo.pool_per_worker (4 -> 3)" in reasons[0]


RULE = planned(6, 8)
LOOKS = tuple(PlannedLook(blocks=blocks, share=1 / 3) for blocks in (6, 7, 8))
OTHER = RULE.model_copy(update={"plan": LOOKS})


def claim(direction: Direction) -> Contrast:
    """Return a claim about two services of equal loads: "none" is true, "greater" is not.

    The difference lies on the limit of "greater", which is so never decided.
    """
    is_none = direction == "none"
    return Contrast(
        name=f"a is {direction}", claim="a against b", response="throughput_rps",
        numerator={"service": "a"}, denominator={"service": "b"},
        scale="ratio" if is_none else "difference", limit=None if is_none else 0.0,
        published_direction=direction, source="planted",
    )  # fmt: skip


class DecidingSession(Told):
    """A session whose plan has the rule."""

    def __init__(self, root: Path, *directions: Direction, **words: Any) -> None:
        words = {"until_decided": RULE, "blocks": RULE.most_blocks, **words}
        super().__init__(root, contrasts=tuple(map(claim, directions)), **words)

    def follow(self, rule: UntilDecided, recorded: UntilDecided | None = None) -> None:
        """Go on by a rule; ``recorded`` is another rule in the record."""
        self.events.clear()
        self.writer.update(until_decided=recorded or rule)
        self.plan = self.plan.model_copy(update={"until_decided": rule})

    def measured(self) -> list[int]:
        """Return the blocks of the trials that began, counted from 1."""
        return list(dict.fromkeys(event.block for event in self.of(TrialBegun)))

    def notes(self) -> list[str]:
        return [note.text for note in self.of(Note)]


def test_a_run_ends_at_the_first_interim_analysis_that_decides_everything(tmp_path: Path) -> None:
    session = DecidingSession(tmp_path, "none")
    record = session.go().record
    assert session.measured() == list(range(1, 7))
    assert record.blocks == len(record.order) == 6
    assert record.until_decided is not None
    assert record.until_decided.ended == "decided"
    assert [look.blocks for look in record.until_decided.looks] == [6]
    assert session.notes() == ["block 6: every contrast is decided"]


def test_one_undecided_contrast_keeps_the_run_going_to_its_most_blocks(
    tmp_path: Path,
) -> None:
    session = DecidingSession(tmp_path, "none", "greater")
    record = session.go().record
    assert session.measured() == list(range(1, 9))
    assert record.blocks == 8
    assert record.until_decided is not None
    assert record.until_decided.ended == "most blocks"
    looks = [(look.blocks, look.undecided) for look in record.until_decided.looks]
    assert looks == [(blocks, ("a is greater",)) for blocks in (6, 8)]
    assert session.notes() == [
        "block 6, not decided: a is greater; next interim analysis after block 8",
        "block 8, not decided: a is greater; most_blocks is reached",
    ]


def test_a_resumed_run_keeps_the_rule_of_its_record(tmp_path: Path) -> None:
    session = DecidingSession(tmp_path, "greater", until_decided=None)
    session.go(*range(6))
    session.follow(RULE, recorded=OTHER)
    rule = session.go(6, 7).record.until_decided
    assert rule is not None
    assert rule.plan == OTHER.plan
    assert [look.blocks for look in rule.looks] == [6, 7, 8]


def test_an_incomplete_block_is_measured_before_the_next_interim_analysis(
    tmp_path: Path,
) -> None:
    session = DecidingSession(tmp_path, "none", until_decided=None)
    session.go(*range(7))
    session.writer.supersede(["b002-p00-a0", "b002-p01-a0"])
    session.follow(RULE)
    record = session.go(2, 7, attempt=1).record
    assert session.measured() == [3, 8]
    assert record.blocks == 8


def in_slices(tmp_path: Path, **changes: object) -> Told:
    """Return a session whose treatments take turns, and pause a."""
    design = Design(kind="slices", slice_ms=50, paused=("a",))
    treatments = tuple(
        item.model_copy(
            update={
                "instruments": (),
                "workload": item.workload.model_copy(
                    update={"arrivals": ClosedLoop(users=5, duration_s=0.2)}
                ),
            }
        )
        for item in plan().treatments
    )
    update = {"treatments": treatments, **changes}
    session = Told(tmp_path, of=plan(design=design).model_copy(update=update))
    session.bench.company = dict.fromkeys("ab", session.bench.generator)
    return session


@pytest.mark.promise
@pytest.mark.parametrize(("now_ms", "is_told"), [(5.0, True), (11.0, False)])
def test_a_service_that_answers_faster_in_its_turns_than_without_a_break_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now_ms: float, is_told: bool
) -> None:
    session = in_slices(tmp_path, unbroken_ms={"a": 8.0, "b": 12.0})

    def measured(_: object, of_block: Any, __: object, ids: Any, ___: object) -> list[TrialTables]:
        times_ms = {"a": 8.1, "b": now_ms}
        common = {"state": "valid", "reasons": []}
        return [
            TrialTables({**ids[item.name], **common, "mean_ms": times_ms[item.name]})
            for item in of_block
        ]

    monkeypatch.setattr("perflab.trials.session.measure_block", measured)
    run = session.go()
    texts = [item.text for item in run.record.warnings if item.code == RESTED]
    assert len(texts) == is_told
    if is_told:
        assert "b answered in 12 ms in a load without a break, and in 5 ms in its turns" in texts[0]
        assert texts[0] in doubt(run)


def test_no_live_rate_is_told_of_a_load_with_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = in_slices(tmp_path)

    def measured(benches: Any, of_block: Any, _: object, ids: Any, __: object) -> list[TrialTables]:
        # One of them is shown.
        for bench in [*benches.values()] * 2:
            bench.on_progress(Progress(finished=10))
        return [
            TrialTables({**ids[item.name], "state": "valid", "reasons": []}) for item in of_block
        ]

    monkeypatch.setattr("perflab.trials.session.measure_block", measured)
    session.go()
    assert [event.rate_rps for event in session.of(LoadProgress)] == [None] * 4


@pytest.mark.promise
def test_where_a_request_fails_in_a_pause_all_is_measured_anew_with_nobody_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = in_slices(tmp_path)
    asked: list[Sequence[str]] = []

    def measured(
        _benches: object, of_block: Any, _rounds: object, identities: Any, paused: Sequence[str]
    ) -> list[TrialTables]:
        asked.append(paused)
        # The second block fails as long as a service is paused.
        met = "status 500" if paused and len(asked) == 2 else ""
        rows = [{**identities[item.name], "state": "failed", "reasons": []} for item in of_block]
        return [TrialTables(row, failed_in_pause=met) for row in rows]

    monkeypatch.setattr("perflab.trials.session.measure_block", measured)
    run = session.go()
    assert asked == [("a",), ("a",), (), ()]
    assert run.current_trials()["attempt"].tolist() == [1] * 4
    assert run.trials()["superseded"].sum() == 4
    (remark,) = (item for item in run.record.warnings if item.code == "turns.anew")
    assert "failed while another was paused (status 500)" in remark.text
    assert run.record.design is not None
    assert run.record.design.paused == ()
    assert session.residents.notes.count("start") >= 1
