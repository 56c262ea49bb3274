"""A run plan: everything that the conductor needs, as data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from perflab.analysis.gates.first_line import are_of_a_duel, fewest_blocks
from perflab.credentials import plain_names
from perflab.errors import ParameterError, RecordingError, StackError, TargetRefused
from perflab.instruments import STANDARD
from perflab.instruments.instrument import NamedInstrument, kind_of
from perflab.load.clients.library_client import out_of_reach
from perflab.load.clients.targets import refuse_foreign
from perflab.load.workers.scripted import find
from perflab.load.workload import ClosedLoop, OpenLoop, Scripted, Workload
from perflab.parameters import FrozenModel, did_you_mean
from perflab.recordings import Contrast, Remark, Response, UntilDecided, named
from perflab.recordings.columns import TURN_COLUMNS, TURNS, declared_schema
from perflab.recordings.design import Design
from perflab.recordings.responses import COMMON
from perflab.stacks.plan import StackPlan, settle
from perflab.stacks.spec import load_service
from perflab.statistics.families import blocks_for_one
from perflab.statistics.in_words import counted
from perflab.statistics.mean_intervals import SMALLEST_N, SMALLEST_SIGNED_RANK
from perflab.trials.designs import FEWEST_TREATMENTS, MOST_TREATMENTS, mirrored_orders, not_cut

# A single request has no rate, and so few have no percentile: such a trial shows nothing.
FEWEST_REQUESTS = 10


class Target(FrozenModel):
    """A service that runs already, outside of the lab: ``http://host:port``.

    Load goes only to loopback and to the hosts in ``allowed``. The lab does nothing else with the
    service, and does not know its CPU and memory; where it ``is_here``, on this machine, its CPU
    cannot be told from that of others.
    """

    url: str
    is_here: bool
    allowed: tuple[str, ...] = ()


class Treatment(FrozenModel):
    """One combination of levels, with its stack, its load and its instruments.

    The ``instruments`` decide what is measured besides the columns that every trial has. With a
    ``target`` the load goes there, and not to a node of the stack, which may be empty. The load
    ``at_start`` is sent before the treatment's first trial on services that have just started; it
    is not recorded.
    """

    name: str
    label: str
    levels: Mapping[str, str]
    stack: StackPlan
    workload: Workload
    instruments: tuple[NamedInstrument, ...] = STANDARD
    target: Target | None = None
    at_start: Workload | None = None

    @property
    def short(self) -> str:
        """Return its levels alone: ``new``."""
        return "/".join(self.levels.values()) or self.name


class RunPlan(FrozenModel):
    """One run before it begins.

    Before every ``fresh_blocks``-th block the services start afresh (0: never). ``design`` says how
    the trials of a block share its time, or is settled when services run. With ``until_decided``
    the run ends as soon as everything is decided, after ``blocks`` at most. With ``finds_warmup``
    the warm-up of all loads is found when services run. With ``why`` a second part looks for the
    causes of differences; ``metrics`` is the path on which the services tell what they count.
    ``unbroken_ms`` is the mean response time of each treatment in a load before the first block,
    which no turn of another interrupted; it is not recorded.
    """

    experiment: str
    system: str = ""
    title: str
    question: str
    parameters: Mapping[str, Any]
    factors: Mapping[str, tuple[str, ...]]
    treatments: tuple[Treatment, ...]
    contrasts: tuple[Contrast, ...]
    blocks: int
    until_decided: UntilDecided | None = None
    seed: int
    fresh_blocks: int = 0
    finds_warmup: bool = False
    design: Design = Design()
    warnings: tuple[Remark, ...] = ()
    unbroken_ms: Mapping[str, float] = {}
    responses: tuple[Response, ...] = COMMON
    why: bool = False
    metrics: str = ""

    def settled(self, design: Design) -> RunPlan:
        """Return the plan with another design, and with the instruments that can be used in it."""
        treatments = self.treatments
        if design.shares_time:
            treatments = tuple(map(_alone, treatments))
        return self.model_copy(update={"design": design, "treatments": treatments})

    def warmed(self, warmup_s: float, remarks: Sequence[Remark]) -> RunPlan:
        """Return the plan with the warm-up that was found, which its parameters record."""
        treatments = tuple(
            item.model_copy(update={"workload": timed(item.workload, warmup_s)})
            for item in self.treatments
        )
        update = {
            "treatments": treatments,
            "finds_warmup": False,
            "parameters": {**self.parameters, "warmup_s": warmup_s},
            "warnings": (*self.warnings, *remarks),
        }
        return self.model_copy(update=update)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left open that is found out when services run."""
        return self.design.is_settled and not self.finds_warmup

    def seeded(self, seed: int) -> RunPlan:
        """Return the plan with another seed, which is recorded among its parameters."""
        update = {"seed": seed, "parameters": {**self.parameters, "seed": seed}}
        return self.model_copy(update=update)

    def where_it_can(self) -> RunPlan:
        """Return the plan; in whole trials if its design is ``auto`` and slices are impossible."""
        if self.design.kind != "auto":
            return self
        problems = self.settled(Design(kind="slices")).hindrances()
        return self.settled(Design(kind="trials", why=problems[0])) if problems else self

    def hindrances(self) -> list[str]:
        """Return a clause for each cause that keeps these treatments from sharing their time."""
        if not self.design.shares_time:
            return []
        causes = []
        count = len(self.treatments)
        if not FEWEST_TREATMENTS <= count <= MOST_TREATMENTS:
            numbers = f"{FEWEST_TREATMENTS} to {MOST_TREATMENTS}"
            causes.append(f"slices need {numbers} treatments, and there are {count}")
        for treatment in self.treatments:
            if why := not_cut(treatment.workload):
                causes.append(why)
            names = [type(item).__name__ for item in treatment.instruments if not item.shares_time]
            if names:
                causes.append(
                    f"{', '.join(names)} cannot tell treatments apart that share a block's time"
                )
        return list(dict.fromkeys(causes))

    def treatment(self, name: str) -> Treatment:
        """Return a treatment by name."""
        return next(item for item in self.treatments if item.name == name)

    @property
    def tables(self) -> dict[str, dict[str, str]]:
        """Return the tables besides the lab's own: the types of their columns, by table."""
        added = {
            name: dict(columns)
            for treatment in self.treatments
            for instrument in treatment.instruments
            for name, columns in instrument.tables.items()
        }
        return {**added, **({TURNS: dict(TURN_COLUMNS)} if self.design.shares_time else {})}

    def order(self) -> list[list[str]]:
        """Return the order of the treatments in every block (:func:`mirrored_orders`)."""
        return mirrored_orders([item.name for item in self.treatments], self.seed, self.blocks)


def timed(workload: Workload, warmup_s: float, counted_s: float | None = None) -> Workload:
    """Return a load with another warm-up, and with another length of what counts, if given.

    With a length, no number of requests bounds a closed loop any more. An open loop has one stage.
    """
    arrivals = workload.arrivals
    assert isinstance(arrivals, ClosedLoop | OpenLoop | Scripted)
    changed: dict[str, Any] = {"warmup_s": warmup_s}
    if counted_s is not None and isinstance(arrivals, ClosedLoop):
        changed |= {"requests": 0, "warmup_requests": 0, "keep_up": False}
    if isinstance(arrivals, OpenLoop):
        (stage,) = arrivals.stages
        length_s = warmup_s + (arrivals.counted_s if counted_s is None else counted_s)
        changed["stages"] = (stage.model_copy(update={"duration_s": length_s}),)
    else:
        changed["duration_s"] = arrivals.duration_s if counted_s is None else counted_s
    if isinstance(arrivals, ClosedLoop):
        changed["max_duration_s"] = warmup_s + changed["duration_s"]
    return workload.model_copy(update={"arrivals": arrivals.model_copy(update=changed)})


def _alone(treatment: Treatment) -> Treatment:
    """Return the treatment without standard instruments that would see what all of them do."""
    kept = [item for item in treatment.instruments if item.shares_time or item not in STANDARD]
    return treatment.model_copy(update={"instruments": tuple(kept)})


class Order(BaseModel):
    """The conductor's task: a new run of ``plan``, or the rest of the run ``resume``.

    ``credentials`` are the values of the plan's references; they go through a pipe and to no file.
    Those that are ``plain`` are no secrets.
    """

    plan: RunPlan
    backend: str = "auto"
    runs: Path
    resume: Path | None = None
    wait_s: float = 0.0
    credentials: Mapping[str, str] = Field(default_factory=dict, repr=False)
    plain: tuple[str, ...] = Field(default_factory=plain_names)


def obstacles(plan: RunPlan) -> list[str]:
    """Return a sentence for everything that would stop a run of ``plan`` after its start."""
    checks = (
        _treatments, _settings, _loads, _scripts, _targets, _instruments, _tables, _claims,
    )  # fmt: skip
    problems = [problem for check in checks for problem in check(plan)]
    way_out = "measure one treatment after the other (design = trials)"
    kind = plan.design.kind
    problems += [f"design = {kind}: {cause}; {way_out}" for cause in plan.hindrances()]
    if not problems:
        try:
            settle({treatment.name: treatment.stack for treatment in plan.treatments})
        except StackError as error:
            problems.append(str(error))
    return list(dict.fromkeys(problems))


def _treatments(plan: RunPlan) -> Iterator[str]:
    if not plan.treatments:
        yield "there is no treatment to measure"
    names = Counter(treatment.name for treatment in plan.treatments)
    for name, count in names.items():
        if count > 1:
            yield f"{count} treatments are named '{name}': their levels cannot be told apart"


def _settings(plan: RunPlan) -> Iterator[str]:
    load = cache(load_service)
    for treatment in plan.treatments:
        for node in treatment.stack.nodes:
            try:
                load(node.service).with_defaults(node.settings)
            except StackError as error:
                yield str(error)


def _instruments(plan: RunPlan) -> Iterator[str]:
    for treatment in plan.treatments:
        for instrument in treatment.instruments:
            try:
                yield from instrument.obstacles(treatment.stack, treatment.workload)
            except StackError as error:
                yield str(error)


def _scripts(plan: RunPlan) -> Iterator[str]:
    loads = (treatment.workload.arrivals for treatment in plan.treatments)
    scripts = {(load.script, load.monitor) for load in loads if isinstance(load, Scripted)}
    for script in {name for pair in scripts for name in pair if name}:
        try:
            find(script)
        except ParameterError as error:
            yield from error.problems


def _targets(plan: RunPlan) -> Iterator[str]:
    for target in {item.target for item in plan.treatments if item.target is not None}:
        try:
            refuse_foreign(target.url, target.allowed)
        except TargetRefused as error:
            yield str(error)


def _tables(plan: RunPlan) -> Iterator[str]:
    """Yield problems of wrong tables, and of tables with different columns in two instruments."""
    tables: dict[str, Mapping[str, str]] = {}
    kinds = {type(item) for treatment in plan.treatments for item in treatment.instruments}
    for kind in sorted(kinds, key=kind_of):
        for name, columns in kind.tables.items():
            if tables.setdefault(name, columns) != columns:
                yield f"two instruments have different columns for table '{name}'; rename one"
            try:
                declared_schema(name, columns)
            except RecordingError as error:
                yield f"{kind_of(kind)}: {error}"


def _claims(plan: RunPlan) -> Iterator[str]:
    names = [response.name for response in plan.responses]
    for contrast in plan.contrasts:
        if named(plan.responses, contrast.response) is None:
            yield (
                f"claim '{contrast.name}' is about '{contrast.response}', which its system does "
                f"not declare as a response{did_you_mean(contrast.response, names)}"
            )


def _loads(plan: RunPlan) -> Iterator[str]:
    for workload in (treatment.workload for treatment in plan.treatments):
        if workload.windows is not None:
            yield (
                "only the design of a run gives a load its windows (design = slices): "
                "leave windows out of the workload"
            )
        yield from out_of_reach(workload)
        if isinstance(workload.arrivals, OpenLoop):
            yield from _few_requests(workload.arrivals)


def _few_requests(arrivals: OpenLoop) -> Iterator[str]:
    rate = max(max(stage.rate, stage.end_rate) for stage in arrivals.stages)
    if rate * arrivals.counted_s < FEWEST_REQUESTS:
        yield (
            f"{rate:g} requests a second for {arrivals.counted_s:g} s are fewer than "
            f"{FEWEST_REQUESTS} requests: raise the rate or the duration"
        )


def too_few_blocks(
    contrasts: Sequence[Contrast], blocks: int, fresh_blocks: int = 1
) -> list[Remark]:
    """Return a warning where no single effect could be shown, however large; several could be.

    Below three blocks there is no verdict at all. From there to six blocks another test is used,
    which has no least p-value. Blocks that share a start of the services count once, unless all do.
    """
    starts, begin = blocks, ""
    if 1 < fresh_blocks < blocks:
        starts = math.ceil(blocks / fresh_blocks)
        begin = f"{blocks} blocks with fresh_blocks = {fresh_blocks} count as {starts}: "
    why = _why_too_few(contrasts, starts)
    return [Remark(code="plan.blocks", text=begin + why)] if why else []


def _why_too_few(contrasts: Sequence[Contrast], blocks: int) -> str:
    tested = [item for item in contrasts if not item.not_testable and not item.set_by_load]
    families = Counter(contrast.family for contrast in tested)
    if not families:
        return ""
    if blocks < SMALLEST_N:
        return (
            f"{counted(blocks, 'block')} can decide nothing: give {SMALLEST_N} or more; with "
            f"{SMALLEST_SIGNED_RANK} or more no noise need be normal"
        )
    response, claims = families.most_common(1)[0]
    is_duel = are_of_a_duel(contrasts)
    needed = fewest_blocks(contrasts) if is_duel else blocks_for_one(claims)
    if not SMALLEST_SIGNED_RANK <= blocks < needed:
        return ""
    if is_duel:
        return (
            f"{blocks} blocks cannot show every difference that the first line may name, however "
            f"large it is; {needed} blocks can"
        )
    return (
        f"with {claims} claims about {response}, {blocks} blocks can show no single effect, "
        f"however large it is; {needed} blocks can"
    )
