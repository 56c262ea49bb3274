"""Find before a run what keeps its plan from being carried out, or from showing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from perflab.errors import RecordingError, StackError, TargetRefused
from perflab.instruments.instrument import kind_of
from perflab.load.clients.library_client import out_of_reach
from perflab.load.clients.targets import refuse_foreign
from perflab.load.workload import OpenLoop
from perflab.parameters import did_you_mean
from perflab.recordings import Contrast, Remark, named
from perflab.recordings.columns import declared_schema
from perflab.stacks.plan import settle
from perflab.stacks.spec import load_service
from perflab.statistics.comparison import SMALLEST_SIGNED_RANK
from perflab.statistics.families import blocks_for_one
from perflab.trials.plan import RunPlan

# A single request has no rate, and so few have no percentile: such a trial shows nothing.
FEWEST_REQUESTS = 10


def obstacles(plan: RunPlan) -> list[str]:
    """Return a sentence for everything that would stop a run of ``plan`` after its start."""
    checks = (_treatments, _settings, _loads, _targets, _instruments, _tables, _claims)
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
                load(node.service).resolve(node.settings)
            except StackError as error:
                yield str(error)


def _instruments(plan: RunPlan) -> Iterator[str]:
    for treatment in plan.treatments:
        for instrument in treatment.instruments:
            try:
                yield from instrument.obstacles(treatment.stack, treatment.workload)
            except StackError as error:
                yield str(error)


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
    measured_s = arrivals.duration_s - arrivals.warmup_s
    rate = max(max(stage.rate, stage.end_rate) for stage in arrivals.stages)
    if rate * measured_s < FEWEST_REQUESTS:
        yield (
            f"{rate:g} requests a second for {measured_s:g} s are fewer than {FEWEST_REQUESTS} "
            "requests: raise the rate or the duration"
        )


def too_few_blocks(contrasts: Sequence[Contrast], blocks: int) -> list[Remark]:
    """Return a warning where no single effect could be shown, however large; several could be.

    Below six blocks another test is used, which has no least p-value.
    """
    if blocks < SMALLEST_SIGNED_RANK:
        return []
    tested = [item for item in contrasts if not item.not_testable and not item.set_by_load]
    families = Counter(contrast.response for contrast in tested)
    if not families:
        return []
    response, claims = families.most_common(1)[0]
    needed = blocks_for_one(claims)
    if blocks >= needed:
        return []
    text = (
        f"with {claims} claims about {response}, {blocks} blocks can show no single effect, "
        f"however large it is; {needed} blocks can"
    )
    return [Remark(code="plan.blocks", text=text)]
