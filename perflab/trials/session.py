"""A session of a run: blocks of trials, committed one by one, until done, stopped or broken."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from perflab.analysis.noise import RESTED
from perflab.analysis.starts import START
from perflab.errors import PerflabError, RunInterrupted, StackError
from perflab.load.workers.generator import Progress
from perflab.load.workload import Workload
from perflab.load.workload.schedule import planned_count
from perflab.recordings import Remark, Run, RunWriter, UntilDecided
from perflab.stacks.commands import go_on
from perflab.statistics.in_words import counted, first_of
from perflab.trials import summary
from perflab.trials.designs import Rounds
from perflab.trials.plan import RunPlan, Treatment
from perflab.trials.progress import Event, LoadProgress, Note, TrialBegun, TrialDone
from perflab.trials.slices import measure_block
from perflab.trials.treatment_records import confirm
from perflab.trials.trial import Bench, TrialTables, measure

MAX_RESTARTS = 3
# In turns a treatment answers so many times as fast as another, against a load without breaks.
FASTER_IN_TURNS = 1.5
# So many contrasts that are not decided are named after a block.
MOST_CLAIMS = 3
Emit = Callable[[Event], None]
# A trial to do: its block, its position in it, its treatment.
Todo = tuple[int, int, str]


class _FailedInPause(Exception):
    """Requests of a treatment failed while another was paused; its text is an example."""


class Session:
    """Runs the remaining blocks of a plan and commits every trial when it ends.

    ``emit`` receives the events of progress.
    """

    def __init__(self, plan: RunPlan, writer: RunWriter, bench: Bench, emit: Emit) -> None:
        self._plan = plan
        self._writer = writer
        self._bench = bench
        self._emit = emit
        self._restarts = 0
        self._began_s, self._measured_trials = time.monotonic(), 0
        self._start = self._committed()

    def run(self, attempts: Mapping[int, int]) -> None:
        """Measure every trial of the blocks, each with the number of its earlier attempts.

        Where a pause of one treatment may have made another fail, all is measured anew without.

        Raises RunInterrupted; StackError, where services failed after the most restarts; and
        WrongAnswer, where a variant gives another answer than was declared.
        """
        try:
            self._run(attempts)
        except _FailedInPause as failed:
            self._run(self._without_pauses(str(failed)))

    def _without_pauses(self, example: str) -> dict[int, int]:
        """Let nobody be paused from now on; return all blocks, with their attempts so far."""
        text = (
            f"requests of one side failed while another was paused ({example}): it was measured "
            "anew from the first block, with all services awake"
        )
        remark = Remark(code="turns.anew", text=text)
        self._plan = self._plan.settled(self._plan.design.model_copy(update={"paused": ()}))
        trials = Run(self._writer.path).trials()
        self._writer.supersede(trials["trial_id"])
        self._writer.update(
            design=self._plan.design,
            warnings=[*self._writer.record.warnings, remark],
        )
        self._emit(Note(text=text))
        self._restart()
        attempts = (trials.groupby("block")["attempt"].max() + 1).to_dict()
        return {block: int(attempts.get(block, 0)) for block in range(self._plan.blocks)}

    def _run(self, attempts: Mapping[int, int]) -> None:
        order, blocks = self._plan.order(), list(attempts)
        todo = [
            (block, position, name)
            for block in blocks
            for position, name in enumerate(order[block])
        ]
        if self._is_decided(todo):
            todo = []
        done = 0
        for step in self._steps(todo):
            block, position, _ = step[0]
            go_on(self._bench.interrupted, "between two trials")
            every = self._plan.fresh_blocks
            if done and not position and every and block % every == 0:
                self._restart()
            self._announce(done, todo, step)
            measured = self._measure(step, attempts[block])
            self._measured_trials += len(step)
            for (_, _, name), tables in zip(step, measured, strict=True):
                tables.row[START] = self._start
                self._confirm(tables, name)
                self._writer.commit_trial(
                    tables.row, tables.requests, tables.samples, **tables.others
                )
                if len(step) > 1:
                    self._announce(done, todo, todo[done : done + 1])
                done += 1
                self._tell(tables.row, self._left_s(len(todo) - done))
            if examples := list(filter(None, (tables.failed_in_pause for tables in measured))):
                raise _FailedInPause(examples[0])
            if len(step) > 1 and self._measured_trials == len(step):
                self._compare_with_unbroken(step, measured)
            spoilt = [tables for tables in measured if not tables.services_whole]
            if spoilt and done < len(todo):
                self._mend(spoilt[0])
            if step[-1][1] == len(order[block]) - 1 and self._is_decided(todo[done:]):
                break

    def _compare_with_unbroken(self, step: Sequence[Todo], measured: Sequence[TrialTables]) -> None:
        """Tell of a treatment that answers faster, beside the others, since it rests between turns.

        What it does about its requests later (a bucket of tokens that fills up, a queue that is
        worked off) is done while the others have their turn.
        """
        before_ms = self._plan.unbroken_ms
        now_ms = {
            name: float(tables.row.get("mean_ms", math.nan))
            for (_, _, name), tables in zip(step, measured, strict=True)
        }
        ratios = {name: now / before_ms.get(name, math.nan) for name, now in now_ms.items()}
        if not all(map(math.isfinite, ratios.values())):
            return
        for name, ratio in ratios.items():
            if ratio * FASTER_IN_TURNS > max(ratios.values()):
                continue
            text = (
                f"{self._plan.treatment(name).short} answered in {before_ms[name]:.3g} ms in a "
                f"load without a break, and in {now_ms[name]:.3g} ms in its turns: something "
                "recovers while it rests, so its times are those of a load with breaks; whole "
                "trials have fewer (--design trials)"
            )
            remark = Remark(code=RESTED, text=text)
            self._writer.update(warnings=[*self._writer.record.warnings, remark])
            self._emit(Note(text=text))

    def _is_decided(self, ahead: Sequence[Todo]) -> bool:
        """Return whether the run ends before the blocks ahead, because everything is decided.

        Interim analyses go by the order of blocks: where an earlier block is to be repeated, there
        is none before that.
        """
        blocks = sorted({block for block, _, _ in ahead})
        done = self._plan.blocks - len(blocks)
        if blocks != list(range(done, self._plan.blocks)):
            return False
        return has_ended(self._writer, done, self._emit)

    def _restart(self) -> None:
        self._bench.residents.stop()
        self._bench.residents.start()
        self._bench.warmed.clear()
        self._start = self._committed()

    def _committed(self) -> int:
        """Return the number of committed trials, which numbers a start of the services.

        It is another one in every session of a run, too.
        """
        return sum(1 for _ in self._writer.path.glob("trials/b*"))

    def _steps(self, todo: Sequence[Todo]) -> list[list[Todo]]:
        """Group the trials that are measured together: each trial alone, or all of a block."""
        if not self._plan.design.shares_time:
            return [[trial] for trial in todo]
        return [list(group) for _, group in groupby(todo, key=lambda trial: trial[0])]

    def _measure(self, step: Sequence[Todo], attempt: int) -> list[TrialTables]:
        """Measure one trial, or all trials of a block that share its time (slices)."""
        identities = {
            name: summary.identity_columns(
                block, position, attempt, name, self._plan.treatment(name).levels
            )
            for block, position, name in step
        }  # fmt: skip
        treatments = [self._plan.treatment(name) for _, _, name in step]
        first = treatments[0]
        self._bench.on_progress = self._progress(first.workload)
        if not self._plan.design.shares_time:
            return [measure(self._bench, first, identities[first.name])]
        loads = {item.name: item.workload for item in treatments}
        rounds = Rounds.of(self._plan.design, loads, self._plan.seed, step[0][0])
        benches, paused = self._benches(treatments), self._plan.design.paused or ()
        return measure_block(benches, treatments, rounds, identities, paused)

    def _benches(self, treatments: Sequence[Treatment]) -> dict[str, Bench]:
        """Return a bench with a generator per treatment; only the first shows live numbers."""
        shown = treatments[0].name
        return {
            item.name: replace(
                self._bench,
                generator=self._bench.company[item.name],
                on_progress=self._bench.on_progress if item.name == shown else lambda _: None,
            )
            for item in treatments
        }

    def _progress(self, workload: Workload) -> Callable[[Progress], None]:
        began_s, planned = time.monotonic(), planned_count(workload.arrivals)
        first: tuple[float, int] | None = None

        def progress(so_far: Progress) -> None:
            nonlocal first
            now_s = time.monotonic()
            rate_rps = None
            if first is None:
                # The load begins after resets, probes, and a load at the start.
                first = now_s, so_far.finished
            elif not self._plan.design.shares_time:
                rate_rps = (so_far.finished - first[1]) / max(now_s - first[0], 1e-3)
            self._emit(
                LoadProgress(
                    finished=so_far.finished,
                    of=planned,
                    seconds=now_s - began_s,
                    rate_rps=rate_rps,
                    failed=so_far.failed,
                    warming_up=so_far.finished > 0 and not so_far.measured,
                )
            )

        return progress

    def _confirm(self, tables: TrialTables, name: str) -> None:
        """Refuse a trial whose services report other settings than the run's record has."""
        reported = self._bench.residents.reported.get(name)
        reasons = confirm(self._writer, name, reported) if reported else []
        if reasons:
            state = "invalid" if tables.row["state"] == "valid" else tables.row["state"]
            tables.row |= {"state": state, "reasons": [*tables.row["reasons"], *reasons]}

    def _announce(self, number: int, todo: Sequence[Todo], step: Sequence[Todo]) -> None:
        block, _, name = todo[number]
        labels = [self._plan.treatment(treatment).label for _, _, treatment in step]
        together = f" ({self._plan.design.kind})" if len(step) > 1 else ""
        self._emit(
            TrialBegun(
                number=number + 1,
                of=len(todo),
                block=block + 1,
                blocks=self._plan.blocks,
                treatment=name,
                label=" | ".join(labels) + together,
                left_s=self._left_s(len(todo) - number),
                at_most=self._plan.until_decided is not None,
            )
        )

    def _left_s(self, ahead: int) -> float | None:
        """Return how long ``ahead`` trials will take by the average so far.

        None before each treatment has been measured once: their trials can differ in length.
        """
        if self._measured_trials < len(self._plan.treatments):
            return None
        return (time.monotonic() - self._began_s) / self._measured_trials * ahead

    def _tell(self, row: Mapping[str, Any], left_s: float | None) -> None:
        self._emit(
            TrialDone(
                trial_id=row["trial_id"],
                state=row["state"],
                reasons=tuple(row["reasons"]),
                throughput_rps=row.get("throughput_rps"),
                messages_per_s=row.get("messages_per_s"),
                left_s=left_s,
            )
        )

    def _mend(self, tables: TrialTables) -> None:
        """Start the services afresh after they failed a trial, a bounded number of times."""
        self._restarts += 1
        reason = str(tables.row["reasons"][0])
        if self._restarts > MAX_RESTARTS:
            raise StackError(
                f"{self._restarts} trials failed, although the services were started afresh "
                f"{MAX_RESTARTS} times; finished trials are kept. The last reason: {reason}"
            )
        lost = f"a trial failed ({reason.splitlines()[0]})"
        self._emit(Note(text=f"{lost}; starting the services afresh"))
        self._restart()


def has_ended(writer: RunWriter, blocks: int, tell: Emit) -> bool:
    """Make the interim analysis after ``blocks`` committed blocks; return whether the run ends.

    The analysis is recorded; a run that it ends has no further blocks in its record.
    """
    rule = writer.record.until_decided
    if rule is None or rule.ended or not rule.is_due(blocks):
        return rule is not None and bool(rule.ended)
    # Imported only where it is needed: it is heavy beside a measurement.
    from perflab.analysis.evaluation import evaluate
    from perflab.analysis.findings import undecided_contrasts

    rule = rule.looked(blocks, undecided_contrasts(evaluate(Run(writer.path))))
    changes: dict[str, Any] = {"until_decided": rule}
    if rule.ended:
        changes |= {"blocks": blocks, "order": writer.record.order[:blocks]}
    writer.update(**changes)
    tell(Note(text=_in_words(rule)))
    return bool(rule.ended)


def _in_words(rule: UntilDecided) -> str:
    last = rule.looks[-1]
    if rule.ended == "decided":
        return f"block {last.blocks}: every contrast is decided"
    names = first_of(last.undecided, MOST_CLAIMS)
    ahead = f"next interim analysis after block {rule.next_look(last.blocks)}"
    if rule.next_look(last.blocks) < rule.most_blocks:
        ahead += f", at most {counted(rule.most_blocks, 'block')}"
    if rule.ended:
        ahead = "most_blocks is reached"
    return f"block {last.blocks}, not decided: {names}; {ahead}"


def state_of(error: BaseException | None) -> tuple[str, str]:
    """Return the run's final state and reason."""
    if error is None:
        return "finished", ""
    if isinstance(error, RunInterrupted):
        return "interrupted", str(error)
    if isinstance(error, PerflabError):
        return "failed", str(error)
    return "failed", f"{type(error).__name__}: {error}"
