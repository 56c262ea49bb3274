"""What a treatment needs: nodes wired together, and the residents that serve all treatments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from perflab.errors import StackError
from perflab.host.placing import ServiceRole
from perflab.parameters import FrozenModel, did_you_mean
from perflab.stacks.spec import ServiceSpec, Value, load_service

# The kernel stops a service that has used up its time until the next period begins; its usual
# period of 100 ms would add pauses that come from the limit. A shorter one than this is of no use:
# most kernels count the time used at ticks of 4 ms.
CPU_PERIOD_US = 10_000
# The kernel takes no quota below 1 ms of a period.
LEAST_CPUS, MOST_CPUS = 0.1, 64.0
Cpus = Annotated[float, Field(ge=LEAST_CPUS, le=MOST_CPUS, allow_inf_nan=False)]
RoundTripMs = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
# A word stands for no limit: 0 could as well mean that nothing passes.
BytesPerS = (
    Annotated[float, Field(ge=1000, le=1_000_000_000, allow_inf_nan=False)] | Literal["unlimited"]
)


class Node(FrozenModel):
    """One service in a stack: its settings, its dependencies, its cores and its CPU limit.

    ``needs`` binds each role that the service names to another node; ``placement`` is a role of the
    placement table; ``cpus`` limits the CPU of all its processes: 0.2 is a fifth of one core (None:
    no limit; only Docker can limit it). Treatments share a service of equal settings, unless
    ``apart`` differs.
    """

    name: str
    service: str
    settings: Mapping[str, Value] = Field(default_factory=dict)
    needs: Mapping[str, str] = Field(default_factory=dict)
    placement: ServiceRole = "services"
    cpus: Cpus | None = None
    apart: str = ""


class Link(FrozenModel):
    """A delay and a bandwidth between a service and a dependency; also a type of parameters.

    Half of ``round_trip_ms`` is in each direction; ``bytes_per_s`` is of each connection,
    ``shared_bytes_per_s`` of all together, and each direction has as much.
    """

    round_trip_ms: RoundTripMs = 0.0
    bytes_per_s: BytesPerS = "unlimited"
    shared_bytes_per_s: BytesPerS = "unlimited"

    def node(self, upstream: str, name: str = "link") -> Node:
        """Return the node of a stack that passes connections on to the node ``upstream``."""
        return Node(
            name=name,
            service="link",
            placement="link",
            needs={"upstream": upstream},
            settings=self.model_dump(),
        )


class Seed(FrozenModel):
    """A command that fills a service with the data of all trials, after each start.

    Its words may hold the placeholders of service.toml, such as ``{python}`` and ``{data}``.
    """

    node: str
    command: tuple[str, ...] = Field(min_length=1)
    timeout_s: float = Field(60.0, gt=0, le=3600)


class StackPlan(FrozenModel):
    """The nodes of one treatment, dependencies first, and what fills, resets and counts them.

    ``database`` names the PostgreSQL node whose waits and flushes are watched. The statements
    ``reset`` empty it before every trial; the query ``count`` selects the number of rows that the
    load has left.

    Raises StackError where a name is of no node, or there are statements without a database.
    """

    nodes: tuple[Node, ...]
    database: str = ""
    seed: tuple[Seed, ...] = ()
    reset: tuple[str, ...] = ()
    count: str = ""

    @model_validator(mode="after")
    def _names_are_known(self) -> StackPlan:
        for seed in self.seed:
            self.node(seed.node, "seed: ")
        if self.database:
            self.node(self.database, "database: ")
        elif self.reset or self.count:
            raise StackError(
                "reset and count are SQL statements: name the database's node in 'database'"
            )
        return self

    def node(self, name: str, where: str = "") -> Node:
        """Return a node by name."""
        for node in self.nodes:
            if node.name == name:
                return node
        names = [node.name for node in self.nodes]
        raise StackError(f"{where}the stack has no node '{name}'{did_you_mean(name, names)}")


class Residency(FrozenModel):
    """The service instances that live through a run, and which serves each treatment's nodes.

    ``residents``, dependencies first, have the names of instances, in ``needs`` too.
    """

    residents: tuple[Node, ...]
    serving: Mapping[str, Mapping[str, str]]


def settle(plans: Mapping[str, StackPlan]) -> Residency:
    """Return the residents of all treatments; nodes of equal image and start settings share one.

    ``plans`` are the stacks by treatment. Raises StackError where a node lacks a dependency of its
    service, the database speaks no SQL, or a setup fills what is no store.
    """
    residents: dict[tuple[object, ...], Node] = {}
    serving: dict[str, dict[str, str]] = {}
    for treatment, plan in plans.items():
        _check_database(plan)
        names: dict[str, str] = {}
        for node in plan.nodes:
            _check_setup(plan, node)
            resident = _resident_for(node, names, residents)
            names[node.name] = resident.name
        serving[treatment] = names
    return Residency(residents=tuple(residents.values()), serving=serving)


def _resident_for(
    node: Node, names: Mapping[str, str], residents: dict[tuple[object, ...], Node]
) -> Node:
    spec = load_service(node.service)
    _check_needs(spec, node, names)
    fixed = spec.with_defaults(node.settings, "start")
    needs = {role: names[target] for role, target in node.needs.items()}
    wiring = (tuple(sorted(fixed.items())), tuple(sorted(needs.items())))
    key = (node.name, node.service, *wiring, node.placement, node.cpus, node.apart)
    if key not in residents:
        same = sum(name == node.name for name, *_ in residents)
        name = f"{node.name}-{same + 1}" if same else node.name
        changes = {"name": name, "settings": fixed, "needs": needs}
        residents[key] = node.model_copy(update=changes)
    return residents[key]


def _check_database(plan: StackPlan) -> None:
    service = plan.node(plan.database).service if plan.database else ""
    if service and not load_service(service).is_postgres:
        raise StackError(
            f"database '{plan.database}' is service '{service}', which is no PostgreSQL"
        )


def _check_needs(spec: ServiceSpec, node: Node, started: Iterable[str]) -> None:
    missing = [role for role in spec.needs if role not in node.needs]
    if missing:
        raise StackError(f"node '{node.name}': 'needs' names no node for {', '.join(missing)}")
    late = set(node.needs.values()) - set(started)
    if late:
        raise StackError(f"node '{node.name}' needs {', '.join(late)}: list that node before it")


def _check_setup(plan: StackPlan, node: Node) -> None:
    """Refuse a setup that would fill a service whose data the lab cannot keep."""
    if not load_service(node.service).setup:
        return
    for name in node.needs.values():
        service = plan.node(name).service
        if not load_service(service).store:
            raise StackError(
                f"the setup of node '{node.name}' fills '{name}', and service '{service}' is no "
                "store ([store] of its service.toml): its data would be gone at the next start"
            )
