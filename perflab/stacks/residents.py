"""The services of a run: started once, resident to its end, active only when it is their turn."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from perflab.errors import ServiceFailed, SettingRefused, StackError
from perflab.host.placement import Placement
from perflab.stacks import kin
from perflab.stacks.asking import ask, reset
from perflab.stacks.backend import HOST, Backend, Instance, Launch, free_port
from perflab.stacks.database import Database
from perflab.stacks.health import refuse_dead, wait_healthy
from perflab.stacks.labels import Labels
from perflab.stacks.patience import Interrupted, go_on, never
from perflab.stacks.plan import Residency, Resident, StackPlan, settle
from perflab.stacks.process_backend import ProcessBackend
from perflab.stacks.spec import Value, load_service

Tell = Callable[[str], None]


class Residents:
    """Starts the instances that all treatments need, and activates one treatment at a time.

    Parameters
    ----------
    backend : Backend
        Where services run.
    plans : mapping
        Treatment name to its stack.
    placement : Placement
        Cores of each role.
    stack : str
        Identity of this stack, carried in every label.
    kind : str
        ``run`` or ``up``.
    tell : callable
        Receives one line per step of slow work.
    interrupted : callable
        Asked during slow work: returns why it is to end, or an empty string.

    Attributes
    ----------
    images : dict
        Service to the identity of what it was started from.
    versions : dict
        Service to name and version of all that is installed where it runs.
    start_s : float
        How long the last start took until every service was healthy, in seconds.
    reported : dict
        Treatment to node to what its service said of its settings when it was last activated.
    """

    def __init__(
        self,
        backend: Backend,
        plans: Mapping[str, StackPlan],
        placement: Placement,
        stack: str,
        kind: str = "run",
        tell: Tell = lambda _: None,
        interrupted: Interrupted = never,
    ) -> None:
        self.backend = backend
        self.plans = plans
        self.residency: Residency = settle(plans)
        self.images: dict[str, str] = {}
        self.versions: dict[str, dict[str, str]] = {}
        self.start_s = 0.0
        self.reported: dict[str, dict[str, dict[str, Any]]] = {}
        self._placement = placement
        self._stack = stack
        self._kind = kind
        self._tell = tell
        self._interrupted = interrupted
        self._secret = secrets.token_urlsafe(24)
        self._instances: dict[str, Instance] = {}
        self._lasting: dict[str, tuple[kin.Member, ...]] = {}
        self._paused: set[str] = set()
        self._databases: dict[str, Database] = {}
        self._reloaded: dict[str, dict[str, Value]] = {}

    def prepare(self) -> None:
        """Build images or artifacts of every service that will be started.

        Raises
        ------
        RunInterrupted
            The user wants to end.
        """
        for name in dict.fromkeys(resident.service for resident in self.residency.residents):
            go_on(self._interrupted, "before services started")
            labels = Labels(self._stack, f"preparation of {name}", self._kind).as_environment()
            spec = load_service(name)
            self.images[name] = self.backend.prepare(spec, self._tell, self._interrupted, labels)
            self.versions[name] = self.backend.versions(spec)

    def start(self) -> None:
        """Start every resident, dependencies first; those of one level start side by side.

        Raises
        ------
        ServiceFailed
            One died or never became healthy; the rest are stopped.
        RunInterrupted
            The user wants to end; what was started is stopped.
        """
        self.backend.clear(self._stack)
        began = time.monotonic()
        try:
            waiting = list(self.residency.residents)
            while waiting:
                level = [
                    item for item in waiting if set(item.needs.values()) <= set(self._instances)
                ]
                for resident in level:
                    self._tell(f"starting {resident.name}")
                    self._instances[resident.name] = self.backend.start(self._launch(resident))
                names = [resident.name for resident in level]
                wait_healthy(names, self._instances, self._interrupted)
                waiting = [item for item in waiting if item not in level]
            self.start_s = time.monotonic() - began
            self._lasting = {
                name: kin.members(item.pids(), item.launch.spec.processes.lasting)
                for name, item in self._instances.items()
            }
        except BaseException:
            self.stop()
            raise

    def _launch(self, resident: Resident) -> Launch:
        spec = load_service(resident.service)
        port = free_port()
        log = ""
        if isinstance(self.backend, ProcessBackend):
            log = str(self.backend.log_path(self._stack, resident.name))
        return Launch(
            spec=spec,
            labels=Labels(self._stack, resident.name, self._kind, port, log),
            settings=spec.resolve(resident.settings),
            addresses={
                role: (HOST, self._instances[name].launch.port)
                for role, name in resident.needs.items()
            },
            port=port,
            control_port=free_port() if spec.control else port,
            cores=self._placement.cores_of(resident.placement),
            secret=self._secret,
        )

    def instance(self, treatment: str, node: str) -> Instance:
        """Return the instance that serves a node of a treatment."""
        return self._instances[self.residency.serving[treatment][node]]

    def active(self, treatment: str) -> dict[str, Instance]:
        """Return node name to instance for a treatment."""
        return {
            node: self._instances[name] for node, name in self.residency.serving[treatment].items()
        }

    def idle(self, treatment: str) -> dict[str, Instance]:
        """Return the residents that a treatment does not use."""
        used = set(self.residency.serving[treatment].values())
        return {name: item for name, item in self._instances.items() if name not in used}

    def database(self, treatment: str) -> Database | None:
        """Return the line to the treatment's database, or None when it has none."""
        node = self.plans[treatment].database
        if not node:
            return None
        name = self.residency.serving[treatment][node]
        if name not in self._databases:
            self._databases[name] = Database(self._instances[name].launch.port, self._secret, name)
        return self._databases[name]

    def reset(self, treatment: str) -> None:
        """Make the treatment's services forget what the last trial left.

        Raises
        ------
        StackError
            One refused, also after its last users had time to go.
        RunInterrupted
            The user wants to end.
        """
        database = self.database(treatment)
        if database is not None:
            database.execute(self.plans[treatment].reset_sql)
        for instance in self.active(treatment).values():
            if instance.launch.spec.reset is not None:
                reset(instance.launch.port, instance.launch.spec.reset.http, self._go_on)

    def _go_on(self) -> None:
        go_on(self._interrupted, "while services were reset")

    def count(self, treatment: str) -> int | None:
        """Return the services' own count of what the load left behind; None where none counts."""
        database, statement = self.database(treatment), self.plans[treatment].count_sql
        return database.count(statement) if database is not None and statement else None

    def counts(self, treatment: str) -> dict[str, dict[str, Any]]:
        """Return what the treatment's services counted since their reset, by node."""
        return {
            node: ask(instance.launch.port, instance.launch.spec.counts.http)
            for node, instance in self.active(treatment).items()
            if instance.launch.spec.counts is not None
        }

    def activate(self, treatment: str) -> None:
        """Resume what the treatment uses, pause the rest, apply and check its settings.

        Raises
        ------
        SettingRefused
            A service reports another value than the treatment asks for.
        ServiceFailed
            A service has died, or one of its processes has.
        """
        for name, instance in self.idle(treatment).items():
            if name not in self._paused:
                instance.pause()
                self._paused.add(name)
        for instance in self.active(treatment).values():
            name = instance.launch.labels.service
            if name in self._paused:
                instance.resume()
                self._paused.discard(name)
        self.check_alive(treatment)
        for name, lost in self.lost(treatment).items():
            log = self._instances[name].log()
            raise ServiceFailed(name, f"lost {lost} since it was started", log)
        for node in self.plans[treatment].nodes:
            self._apply(treatment, node.name)
        self.reported[treatment] = {
            node.name: self._verify(treatment, node.name) for node in self.plans[treatment].nodes
        }

    def check_alive(self, treatment: str) -> None:
        """Raise ServiceFailed, with its log, when a service of the treatment has ended."""
        refuse_dead(self.active(treatment))

    def lost(self, treatment: str) -> dict[str, str]:
        """Return which processes the treatment's services, still running, lost since their start.

        A first process replaces its children: what the service was at its start it is no more.

        Returns
        -------
        dict
            Names of services that lost any to the processes' numbers and commands.
        """
        found = {}
        for instance in self.active(treatment).values():
            name = instance.launch.labels.service
            gone = [member for member in self._lasting.get(name, ()) if not member.is_alive]
            if gone and not instance.exit_reason():
                found[name] = "process " + ", ".join(map(str, gone))
        return found

    def _apply(self, treatment: str, name: str) -> None:
        node = self.plans[treatment].node(name)
        instance = self.instance(treatment, name)
        spec = instance.launch.spec
        wanted = spec.scoped(spec.resolve(node.settings), "reload")
        if not wanted or spec.reload is None:
            return
        if spec.reload.kind == "postgres":
            database = self.database(treatment) if self.plans[treatment].database == name else None
            if database is None:
                raise StackError(f"node '{name}' is not the stack's database")
            database.apply(spec, wanted)
        else:
            ask(instance.launch.control_port, "/settings", wanted)
            shown = ask(instance.launch.control_port, "/settings")
            _refuse_difference(name, wanted, shown)

    def _verify(self, treatment: str, name: str) -> dict[str, Any]:
        """Ask the service itself which start settings it runs with; return what it says."""
        instance = self.instance(treatment, name)
        spec = instance.launch.spec
        if spec.report is None:
            return {}
        shown = ask(instance.launch.port, spec.report.http)
        _refuse_difference(name, spec.scoped(instance.launch.settings, "image", "start"), shown)
        seen = shown.get("database")
        database = self.plans[treatment].database
        if isinstance(seen, dict) and database:
            node = self.plans[treatment].node(database)
            server = load_service(node.service)
            wanted = server.scoped(server.resolve(node.settings), "reload")
            _refuse_difference(f"{name} (through its own pool)", wanted, seen)
        return dict(shown)

    def stop(self) -> None:
        """Stop everything, dependents first."""
        for database in self._databases.values():
            database.close()
        self._databases.clear()
        for name in self._paused:
            self._instances[name].resume()
        self._paused.clear()
        self._lasting.clear()
        for name in reversed(list(self._instances)):
            self._instances.pop(name).stop()


def _refuse_difference(name: str, wanted: Mapping[str, Value], shown: Mapping[str, Any]) -> None:
    different = [
        f"{key} is {shown[key]!r}, wanted {value!r}"
        for key, value in wanted.items()
        if key in shown and str(shown[key]) != str(value) and not _same_number(shown[key], value)
    ]
    if different:
        raise SettingRefused(f"service '{name}' runs with other settings: {'; '.join(different)}")


def _same_number(shown: Any, wanted: Value) -> bool:
    try:
        return float(shown) == float(wanted)
    except (TypeError, ValueError):
        return False
