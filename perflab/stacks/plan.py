"""What a treatment needs: nodes wired together, and the residents that serve all treatments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field

from perflab.errors import StackError
from perflab.stacks.spec import ServiceSpec, Value, load_service


class Node(BaseModel):
    """One service in a stack: its settings, what it is wired to, and where it runs.

    ``needs`` binds each role the service names to another node; ``placement`` is a role of the
    placement table.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    service: str
    settings: Mapping[str, Value] = Field(default_factory=dict)
    needs: Mapping[str, str] = Field(default_factory=dict)
    placement: str = "services"


class StackPlan(BaseModel):
    """The nodes of one treatment, dependencies first, with its database's reset hook.

    ``reset_sql`` runs before every trial; ``count_sql`` is the server's own count of what the load
    should have left behind. Both are empty without a database. Services that describe a reset of
    their own (``[reset]`` in service.toml) need nothing here.
    """

    model_config = ConfigDict(frozen=True)

    nodes: tuple[Node, ...]
    database: str = ""
    reset_sql: tuple[str, ...] = ()
    count_sql: str = ""

    def node(self, name: str) -> Node:
        """Return a node by name."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise StackError(f"the stack has no node '{name}'")


class Resident(BaseModel):
    """One service instance that lives through the whole run; several treatments may share it."""

    model_config = ConfigDict(frozen=True)

    name: str
    node: str
    service: str
    settings: Mapping[str, Value]
    needs: Mapping[str, str]
    placement: str


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
    """
    residents: dict[tuple[object, ...], Resident] = {}
    serving: dict[str, dict[str, str]] = {}
    for treatment, plan in plans.items():
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
    key = (node.name, node.service, tuple(sorted(fixed.items())), tuple(sorted(needs.items())))
    if key not in residents:
        same = sum(resident.node == node.name for resident in residents.values())
        residents[key] = Resident(
            name=node.name if not same else f"{node.name}-{same + 1}",
            node=node.name,
            service=node.service,
            settings=fixed,
            needs=needs,
            placement=node.placement,
        )
    return residents[key]


def _check_needs(spec: ServiceSpec, node: Node, started: Iterable[str]) -> None:
    missing = [role for role in spec.needs if role not in node.needs]
    if missing:
        raise StackError(f"node '{node.name}' leaves {', '.join(missing)} unbound")
    late = [target for target in node.needs.values() if target not in set(started)]
    if late:
        raise StackError(f"node '{node.name}' needs {', '.join(late)}, which must come before it")
