"""The conductor: the process that runs the trials, apart from the program that asked for them.

It reads its order (one JSON line) and then listens on standard input: a line ``stop`` or the end
of the input ends the run in order. Events go to standard output, one JSON object per line; what a
system's own code prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from io import FileIO
from typing import Any, TextIO

from perflab import credentials
from perflab.errors import PerflabError
from perflab.host import facts
from perflab.host.lock import measurement_lock, other_users
from perflab.host.placing import Placement, placement
from perflab.host.processes import private_streams
from perflab.load.workers.generator import Generator
from perflab.paths import foreign_system
from perflab.recordings import (
    Remark,
    RunRecord,
    RunWriter,
    check_same,
    check_services,
    new_run_id,
    remaining_blocks,
)
from perflab.stacks import cleanup
from perflab.stacks.backend import Backend, Labels
from perflab.stacks.commands import go_on
from perflab.stacks.process_backend import choose
from perflab.stacks.reaper import Reapers
from perflab.stacks.residents import Residents
from perflab.stacks.spec import load_service
from perflab.trials import choosing
from perflab.trials.causes import explain
from perflab.trials.duration import announced
from perflab.trials.plan import Order, RunPlan
from perflab.trials.progress import Event, Failed, Note, RunBegun
from perflab.trials.session import Session, state_of
from perflab.trials.treatment_records import treatment_records
from perflab.trials.trial import Bench
from perflab.trials.warming import FOUND

ASKER_GONE = "the program that asked for it is gone"


class Conductor:
    """Runs one order from lock to release."""

    def __init__(self, order: Order, asker: FileIO, events: TextIO) -> None:
        self._order = order
        self._asker, self._events = asker, events
        self._why_to_end = ""

    def emit(self, event: Event) -> None:
        """Write one event; end the run where the reader is gone."""
        try:
            fields = event.model_dump(mode="json")
            # The asker opens the folder by its path, in which a short password may be a name.
            if not isinstance(event, RunBegun):
                # Texts only: a number that is a credential as well must stay a number.
                fields = credentials.masked_within(fields)
            self._events.write(json.dumps(fields) + "\n")
        except (BrokenPipeError, ValueError):
            self._end_because(ASKER_GONE)

    def _end_because(self, why: str) -> None:
        self._why_to_end = self._why_to_end or why

    def _interrupted(self) -> str:
        return self._why_to_end

    def _note(self, text: str) -> None:
        self.emit(Note(text=text))

    def listen(self) -> None:
        """End the run on ``stop``, on the end of the input, and on SIGINT or SIGTERM."""

        def read() -> None:
            # Unbuffered: a buffered reader's lock would block the interpreter's exit.
            self._end_because("it was asked to" if self._asker.read(4096) else ASKER_GONE)

        def take(number: int, _frame: object) -> None:
            self._end_because(f"its conductor got {signal.Signals(number).name}")

        threading.Thread(target=read, daemon=True).start()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, take)

    def run(self) -> None:
        """Hold the host's lock, clean up after crashes, and measure."""
        plan = self._order.plan
        for warning in plan.warnings:
            self._note(f"warning: {warning.text}")
        with ExitStack() as ending:
            ending.enter_context(
                measurement_lock(
                    plan.experiment,
                    self._order.wait_s,
                    tell=self._note,
                    go_on=lambda: go_on(self._interrupted, "while it waited for the host"),
                )
            )
            # This process holds the lock, so nobody uses the services of crashed runs.
            if removed := cleanup.remove_of_kind("run"):
                self._note(f"removed {len(removed)} services that a crashed run left behind")
            for treatment in plan.treatments:
                for instrument in treatment.instruments:
                    instrument.check_usable(treatment.stack)
            backend = choose(self._order.backend)
            self._measure(ending, backend, placement())

    def _measure(self, ending: ExitStack, backend: Backend, places: Placement) -> None:
        writer, attempts = self._open(backend, places)
        run_id, path = writer.record.run_id, str(writer.path)
        self.emit(RunBegun(run_id=run_id, path=path, backend=backend.name))
        try:
            bench = self._bench(ending, backend, places, writer)
            plan = self._settled(bench, backend, writer)
            self._tell_duration(plan, len(attempts))
            bench = self._with_company(ending, bench, plan)
            Session(plan, writer, bench, self.emit).run(attempts)
        finally:
            state, reason = state_of(sys.exception())
            writer.update(state=state, reason=reason, finished_at=facts.session()["at"])
        if plan.why:
            explain(plan, bench, writer, self.emit, lambda of: new_record(of, backend, places))

    def _tell_duration(self, plan: RunPlan, blocks: int) -> None:
        # No fault of an earlier run keeps this one from being measured.
        with suppress(PerflabError, OSError):
            if text := announced(plan, blocks, self._order.runs):
                self._note(text)

    def _open(self, backend: Backend, places: Placement) -> tuple[RunWriter, dict[int, int]]:
        """Return the writer, and the blocks still to do with their numbers of attempts."""
        plan = self._order.plan
        if self._order.resume is None:
            record = new_record(plan, backend, places)
            return RunWriter.create(self._order.runs, record), dict.fromkeys(range(plan.blocks), 0)
        writer = RunWriter.reopen(self._order.resume)
        check_same(writer.record, new_record(_as_before(plan, writer.record), backend, places))
        attempts, superseded = remaining_blocks(writer.record, writer.path)
        writer.supersede(superseded)
        sessions = [*writer.record.sessions, facts.session()]
        # It may be resumed for its why alone.
        parameters = writer.record.parameters | ({"why": True} if plan.why else {})
        writer.update(state="running", reason="", sessions=sessions, parameters=parameters)
        return writer, attempts

    def _bench(
        self, ending: ExitStack, backend: Backend, places: Placement, writer: RunWriter
    ) -> Bench:
        plan = self._order.plan
        name = writer.record.run_id.rpartition("-")[2] + f"-{os.getpid()}"
        reapers = Reapers(name)
        stacks = {treatment.name: treatment.stack for treatment in plan.treatments}
        with ExitStack() as early:
            early.callback(reapers.dismiss)
            residents = Residents(
                backend, stacks, places, name, "run", self._note, self._interrupted
            )
            residents.prepare()
            if writer.record.images:
                check_services(writer.record, residents.images, residents.versions)
            writer.update(images=residents.images, versions=residents.versions)
            early.pop_all()

        def end() -> None:
            residents.end()
            # Not if that failed: then they end what is left.
            reapers.dismiss()

        ending.callback(end)
        # Not before: what is prepared may use all cores.
        os.sched_setaffinity(0, set(places.sampler))
        residents.start()
        if residents.took_s:
            writer.update(notes={**writer.record.notes, "took_s": residents.took_s})
        return Bench(
            residents,
            self._generator(ending, places, name),
            places,
            self._interrupted,
            labels=Labels(name, "profiler", "run").as_environment(),
        )

    @staticmethod
    def _generator(ending: ExitStack, places: Placement, name: str) -> Generator:
        labels = Labels(name, "client", "run").as_environment()
        generator = Generator(places.client, labels, real_time=places.client_apart)
        ending.callback(generator.close)
        generator.start()
        return generator

    def _with_company(self, ending: ExitStack, bench: Bench, plan: RunPlan) -> Bench:
        """Return the bench, with a generator for each treatment where they share their time."""
        if not plan.design.shares_time:
            return bench
        first, *others = (treatment.name for treatment in plan.treatments)
        stack = bench.residents.stack
        company = {name: self._generator(ending, bench.placement, stack) for name in others}
        return replace(bench, company={first: bench.generator, **company})

    def _settled(self, bench: Bench, backend: Backend, writer: RunWriter) -> RunPlan:
        """Return the plan with nothing left open: its warm-up, its design.

        What is chosen is recorded before the first trial, and a resumed run keeps it.
        """
        plan = _as_before(self._order.plan, writer.record)
        if plan.is_settled:
            return plan
        before = plan
        plan = choosing.settle(bench, plan, backend.name)
        remarks = plan.warnings[len(before.warnings) :]
        writer.update(**settled_fields(plan), warnings=[*writer.record.warnings, *remarks])
        for remark in remarks:
            self._note(remark.text)
        if before.finds_warmup and not any(each.code == FOUND for each in plan.warnings):
            self._note(f"warm-up: {plan.parameters['warmup_s']:g} s, nothing falls after that")
        self._note(f"design: {plan.design.text()}")
        return plan


def _as_before(plan: RunPlan, record: RunRecord) -> RunPlan:
    """Return the plan with the design that the run's record has, if one was settled."""
    if plan.design.is_settled or record.design is None:
        return plan
    return plan.settled(record.design)


def new_record(plan: RunPlan, backend: Backend, places: Placement) -> RunRecord:
    """Return the record with which a run of the plan would begin here and now."""
    session = facts.session()
    return RunRecord(
        run_id=new_run_id(plan.experiment),
        experiment=plan.experiment,
        system=plan.system,
        title=plan.title,
        question=plan.question,
        state="running",
        created_at=session["at"],
        **settled_fields(plan),
        factors={name: list(levels) for name, levels in plan.factors.items()},
        blocks=plan.blocks,
        until_decided=plan.until_decided,
        seed=plan.seed,
        order=plan.order(),
        backend=backend.name,
        network_path=backend.network_path,
        placement=places.model_dump(mode="json"),
        contrasts=list(plan.contrasts),
        environment=facts.environment(),
        code=facts.code(_systems(plan)),
        sessions=[session],
        warnings=[*plan.warnings, *_bystanders()],
        responses=list(plan.responses),
    )


def settled_fields(plan: RunPlan) -> dict[str, Any]:
    """Return the fields of a run's record that may change when services run."""
    treatments, parts = treatment_records(plan.treatments)
    return {
        "parameters": dict(plan.parameters),
        "treatments": treatments,
        "parts": parts,
        "design": plan.design if plan.design.is_settled else None,
        "tables": plan.tables,
    }


def _systems(plan: RunPlan) -> set[str]:
    """Return the systems of a run: its own, and those of the services that it starts."""
    services = {node.service for item in plan.treatments for node in item.stack.nodes}
    return {plan.system, *(foreign_system(load_service(name).folder) for name in services)}


def _bystanders() -> list[Remark]:
    remarks = [Remark(code="host.other_users", text=text) for text in other_users()]
    others = [item for item in cleanup.everything() if item.kind == "up"]
    names = ", ".join(f"{item.service} ({item.stack})" for item in others)
    if names:
        problem = f"other services of the lab were up during the run: {names}"
        text = f"{problem}; 'perflab stack down' ends them"
        remarks.append(Remark(code="host.other_services", text=text))
    return remarks


def main() -> None:
    """Carry out the order on standard input."""
    # Unbuffered: the listener reads what follows the first line.
    asker, events = private_streams()
    if not (line := asker.readline()):
        return
    order = Order.model_validate_json(line)
    credentials.take(order.credentials, order.plain)
    conductor = Conductor(order, asker, events)
    conductor.listen()
    try:
        conductor.run()
    except PerflabError as error:
        conductor.emit(Failed(kind=type(error).__name__, text=str(error)))
        sys.exit(1)


if __name__ == "__main__":
    main()
