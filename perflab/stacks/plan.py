"""What a treatment needs: nodes wired together, and the residents that serve all treatments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from perflab.errors import StackError
from perflab.host.placing import SERVICE_ROLES, ServiceRole
from perflab.parameters import did_you_mean
from perflab.stacks.hooks import Hook, HttpHook, Purpose, SqlHook
from perflab.stacks.spec import ServiceSpec, Value, load_service

# A user who vanished is found out by the service only when its keep-alive has gone unanswered.
RESET_PATIENCE_S = 45.0
# The kernel stops a service that has used up its time until the next period begins: its usual
# periods would add pauses of up to 100 ms, which are the limit's and not the service's.
# Shorter ones than this bring nothing: what was used is counted at ticks, of 4 ms in most kernels,
# and a busy service that overran its quota is stopped for several periods.
CPU_PERIOD_US = 10_000
# The kernel takes no quota below 1 ms of a period.
LEAST_CPUS, MOST_CPUS = 0.1, 64.0
Cpus = Annotated[float, Field(ge=LEAST_CPUS, le=MOST_CPUS, allow_inf_nan=False)]


class Node(BaseModel):
    """One service in a stack: its settings, what it is wired to, where it runs, what it may take.

    ``needs`` binds each role the service names to another node; ``placement`` is a role of the
    placement table; ``cpus`` limits the CPU of all its processes to a share of the time of their
    cores: 0.2 is a fifth of one core (None: all of it; only Docker can limit it). Treatments share
    a service that they want alike, unless ``apart`` differs: then none meets what the other has
    left.

    Raises
    ------
    StackError
        The placement is none that services have.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    service: str
    settings: Mapping[str, Value] = Field(default_factory=dict)
    needs: Mapping[str, str] = Field(default_factory=dict)
    placement: ServiceRole = "services"
    cpus: Cpus | None = None
    apart: str = ""

    @field_validator("placement", mode="before")
    @classmethod
    def _is_a_role(cls, given: object) -> object:
        if given not in SERVICE_ROLES:
            raise StackError(
                f"placement '{given}' is none of a service{did_you_mean(str(given), SERVICE_ROLES)}"
                f"; placements: {', '.join(SERVICE_ROLES)}"
            )
        return given


class StackPlan(BaseModel):
    """The nodes of one treatment, dependencies first, and its hooks.

    ``seed`` is carried out once after every start, for data that all trials need; ``reset`` before
    every trial; ``count`` is the services' own count of what the load should have left behind,
    several are added up. Services that describe a reset of their own (``[reset]`` in service.toml)
    need none here. ``database`` names the PostgreSQL node whose waits and flushes are watched.

    Raises
    ------
    StackError
        A hook is for a node that is not there, or a count says nothing of where its number is.
    """

    model_config = ConfigDict(frozen=True)

    nodes: tuple[Node, ...]
    database: str = ""
    seed: tuple[Hook, ...] = ()
    reset: tuple[Hook, ...] = ()
    count: tuple[Hook, ...] = ()

    @model_validator(mode="after")
    def _names_are_known(self) -> StackPlan:
        for purpose, hook in self.hooks():
            self.node(hook.node, f"{purpose} ({hook}): ")
        if self.database:
            self.node(self.database, "database: ")
        for hook in self.count:
            if isinstance(hook, HttpHook) and hook.number is None:
                raise StackError(
                    f"count ({hook}) of node '{hook.node}': say where in the answer the number is "
                    "(number='/a/json/pointer')"
                )
        return self

    def hooks(self) -> Iterator[tuple[Purpose, Hook]]:
        """Yield every hook that this plan names, with its purpose."""
        yield from (("seed", hook) for hook in self.seed)
        yield from (("reset", hook) for hook in self.reset)
        yield from (("count", hook) for hook in self.count)

    def resets(self) -> Iterator[Hook]:
        """Yield what is to be done before a trial: the plan's own hooks, then the services'."""
        yield from self.reset
        for node in self.nodes:
            own = load_service(node.service).reset
            if own is not None:
                yield HttpHook(node=node.name, path=own.http, timeout_s=RESET_PATIENCE_S)

    def node(self, name: str, where: str = "") -> Node:
        """Return a node by name."""
        for node in self.nodes:
            if node.name == name:
                return node
        known = [node.name for node in self.nodes]
        raise StackError(f"{where}the stack has no node '{name}'{did_you_mean(name, known)}")


class Resident(BaseModel):
    """One service instance that lives through the whole run; several treatments may share it."""

    model_config = ConfigDict(frozen=True)

    name: str
    node: str
    service: str
    settings: Mapping[str, Value]
    needs: Mapping[str, str]
    placement: ServiceRole
    cpus: float | None


class Residency(BaseModel):
    """All residents, dependencies first, and which of them serves each node of each treatment."""

    model_config = ConfigDict(frozen=True)

    residents: tuple[Resident, ...]
    serving: Mapping[str, Mapping[str, str]]


def settle(plans: Mapping[str, StackPlan]) -> Residency:
    """Share instances between treatments whose image and start settings are equal.

    Settings of scope ``reload`` and ``request`` do not make a new resident: they are changed
    between trials.

    Parameters
    ----------
    plans : mapping
        Treatment name to its stack.

    Raises
    ------
    StackError
        A node is not wired as its service needs it, or SQL is meant for one that speaks none.
    """
    residents: dict[tuple[object, ...], Resident] = {}
    serving: dict[str, dict[str, str]] = {}
    for treatment, plan in plans.items():
        _check_sql(plan)
        names: dict[str, str] = {}
        for node in plan.nodes:
            resident = _resident_for(node, names, residents)
            names[node.name] = resident.name
        serving[treatment] = names
    return Residency(residents=tuple(residents.values()), serving=serving)


def _resident_for(
    node: Node, names: Mapping[str, str], residents: dict[tuple[object, ...], Resident]
) -> Resident:
    spec = load_service(node.service)
    _check_needs(spec, node, names)
    fixed = spec.scoped(spec.resolve(node.settings), "image", "start")
    needs = {role: names[target] for role, target in node.needs.items()}
    bounds = (node.placement, node.cpus, node.apart)
    wiring = (tuple(sorted(fixed.items())), tuple(sorted(needs.items())))
    key = (node.name, node.service, *wiring, *bounds)
    if key not in residents:
        same = sum(resident.node == node.name for resident in residents.values())
        residents[key] = Resident(
            name=node.name if not same else f"{node.name}-{same + 1}",
            node=node.name,
            service=node.service,
            settings=fixed,
            needs=needs,
            placement=node.placement,
            cpus=node.cpus,
        )
    return residents[key]


def _check_sql(plan: StackPlan) -> None:
    for purpose, hook in plan.hooks():
        service = plan.node(hook.node).service
        if isinstance(hook, SqlHook) and not load_service(service).is_postgres:
            raise StackError(
                f"{purpose} ({hook}): node '{hook.node}' is a '{service}', which speaks no SQL; "
                "take a PostgreSQL node, an HTTP call or a command"
            )


def _check_needs(spec: ServiceSpec, node: Node, started: Iterable[str]) -> None:
    missing = [role for role in spec.needs if role not in node.needs]
    if missing:
        raise StackError(f"node '{node.name}' leaves {', '.join(missing)} unbound")
    late = [target for target in node.needs.values() if target not in set(started)]
    if late:
        raise StackError(f"node '{node.name}' needs {', '.join(late)}, which must come before it")
