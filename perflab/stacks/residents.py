"""The services of a run: they start together and stay, whichever treatment is measured."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import psutil

from perflab.credentials import keep, masked
from perflab.errors import BackendUnavailable, ServiceFailed
from perflab.host.meters import ProcessTable
from perflab.host.placing import Placement
from perflab.stacks.asking import ask
from perflab.stacks.backend import (
    HOST,
    Backend,
    Instance,
    Labels,
    Launch,
    hold_port,
)
from perflab.stacks.commands import Interrupted, Work, go_on, never
from perflab.stacks.listening import owners
from perflab.stacks.plan import Node, Residency, StackPlan, settle
from perflab.stacks.resets import forget, named
from perflab.stacks.service_processes import is_alive, members
from perflab.stacks.settings import Database, agree
from perflab.stacks.spec import load_service
from perflab.stacks.stack_folders import kept_by
from perflab.stacks.starting import refuse_dead, start_all
from perflab.stacks.stores import is_filled_anew, lay_to_rest, rest, run_setup, to_fill, told_by

Tell = Callable[[str], None]
SLOW_S, CLOSED_WITHIN_S = 2.0, 2.0


class Residents:
    """Starts the instances that all treatments need, and activates one treatment at a time.

    ``images`` has the identity of what each service was started from, ``versions`` what it has
    installed, ``reported`` the settings that a treatment's nodes reported when last activated, and
    ``took_s`` how long setups and the latest copies of what they left took.
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
        self.stack = stack
        self.plans = plans
        self.residency: Residency = settle(plans)
        self.images: dict[str, str] = {}
        self.versions: dict[str, dict[str, str]] = {}
        self.reported: dict[str, dict[str, dict[str, Any]]] = {}
        self.took_s: dict[str, float] = {}
        self._placement = placement
        self._kind = kind
        # It is one for the whole run: the data that a setup has left hold it.
        self._secret = secrets.token_urlsafe(24)
        keep(self._secret, "store password")
        self._tell = tell
        self._interrupted = interrupted
        self._instances: dict[str, Instance] = {}
        self._lasting: dict[str, dict[psutil.Process, str]] = {}
        self._databases: dict[str, Database] = {}
        self._ports: list[socket.socket] = []
        # The names of the stores that a setup has filled; None before that.
        self._filled: frozenset[str] | None = None

    def prepare(self) -> None:
        """Build images or artifacts of every service of the run.

        Raises BackendUnavailable where a node has a CPU limit that this backend cannot keep.
        """
        limited = [item.name for item in self.residency.residents if item.cpus]
        if limited and (why := self.backend.cpu_obstacle()):
            raise BackendUnavailable(f"the CPU limit of {', '.join(limited)} cannot be set: {why}")
        for name in dict.fromkeys(resident.service for resident in self.residency.residents):
            go_on(self._interrupted, "before services started")
            labels = Labels(self.stack, f"preparation of {name}", self._kind).as_environment()
            spec = load_service(name)
            work = Work(self._tell, self._interrupted, labels)
            self.images[name] = self.backend.prepare(spec, work)
            server = {"server": spec.store.text} if spec.store else {}
            self.versions[name] = self.backend.versions(spec) | server

    def start(self) -> None:
        """Start and seed every resident; where one fails, stop all and raise its error.

        Before the first start, the setups of the services fill their stores.
        """
        self.backend.clear(self.stack)
        try:
            if self._filled is None:
                self._fill_stores()
            start_all(self.residency.residents, self._start, self._instances, self._interrupted)
            for name, item in self._instances.items():
                if sentence := item.follow():
                    self._tell(f"{name}: {sentence}")
            self.seed()
            table = ProcessTable()
            self._lasting = {name: _lasting(item, table) for name, item in self._instances.items()}
        except BaseException:
            self.stop()
            raise

    def _fill_stores(self) -> None:
        """Run every setup once, on stores of another stack, and keep the data of these stores."""
        kept = kept_by(self.stack)
        self.backend.clear(kept)
        fillers, stores = to_fill(self.residency.residents)

        def start(item: Node) -> Instance:
            return self.backend.start(self._launch(item, kept))

        start_all(stores, start, self._instances, self._interrupted)
        filled = dict(self._instances)
        for item in fillers:
            self._tell(f"setup of {item.name} (once)")
            self._set_up(item, kept)
        for name in filled:
            with self._timed(f"rest of {name}"):
                lay_to_rest(name, self._instances, self._interrupted)
        self.stop()
        self._filled = frozenset(filled)

    def _set_up(self, item: Node, stack: str) -> None:
        """Let the setup of a service fill its stores, which run, and end."""
        stores = {name: self._instances[name] for name in item.needs.values()}
        with self._timed(f"setup of {item.name}"):
            launch = replace(self._launch(item, stack), is_setup=True)
            self._instances[item.name] = self.backend.start(launch)
            run_setup(item.name, self._instances[item.name], stores, self._interrupted)
            self._instances.pop(item.name).stop(interrupted=self._interrupted)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        """Note how long a step takes, and tell it at the first time, and whenever it is slow."""
        began = time.monotonic()
        yield
        took_s = time.monotonic() - began
        if what not in self.took_s or took_s > SLOW_S:
            self._tell(f"{what} took {took_s:.1f} s")
        self.took_s[what] = round(took_s, 3)

    def _start(self, resident: Node) -> Instance:
        """Start a resident, with a copy of its data where a setup has filled it.

        A setup that fills what cannot be copied runs before.
        """
        if is_filled_anew(resident, self.residency.residents):
            self._set_up(resident, self.stack)
            for name in resident.needs.values():
                rest(name, self._instances[name], self._interrupted)
        self._tell(f"starting {resident.name}")
        launch = self._launch(resident, self.stack)
        if resident.name in (self._filled or ()):
            labels = replace(launch.labels, service=f"copy of {resident.name}").as_environment()
            with self._timed(f"copy of {resident.name}"):
                work = Work(interrupted=self._interrupted, labels=labels)
                self.backend.copy_data(launch, kept_by(self.stack), work)
        return self.backend.start(launch)

    def _launch(self, resident: Node, stack: str) -> Launch:
        """Return a start on the resident's cores, with ports of its own, and what it needs."""
        spec = load_service(resident.service)
        port = self._port()
        needed = {role: self._instances[name].launch for role, name in resident.needs.items()}
        return Launch(
            spec=spec,
            labels=Labels(stack, resident.name, self._kind, port),
            settings=spec.with_defaults(resident.settings),
            needed={role: other.port for role, other in needed.items()},
            provided=told_by(needed),
            port=port,
            control_port=self._port() if spec.control else port,
            cores=getattr(self._placement, resident.placement),
            secret=self._secret,
            cpus=resident.cpus,
        )

    def _port(self) -> int:
        """Return a port that is held for this run until it stops."""
        self._ports.append(hold_port())
        return int(self._ports[-1].getsockname()[1])

    def instance(self, treatment: str, node: str) -> Instance:
        """Return the instance that serves a node of a treatment."""
        return self._instances[self.residency.serving[treatment][node]]

    def active(self, treatment: str) -> dict[str, Instance]:
        """Return node name to instance for a treatment."""
        serving = self.residency.serving[treatment]
        return {node: self._instances[name] for node, name in serving.items()}

    def idle(self, treatment: str) -> dict[str, Instance]:
        """Return the residents that a treatment does not use."""
        used = set(self.residency.serving[treatment].values())
        return {name: item for name, item in self._instances.items() if name not in used}

    def database(self, treatment: str) -> Database | None:
        """Return the connection to the treatment's database, or None when it has none."""
        node = self.plans[treatment].database
        return self._line(self.instance(treatment, node)) if node else None

    def _line(self, instance: Instance) -> Database:
        """Return the lab's own connection to a PostgreSQL instance, made once."""
        name = instance.launch.labels.service
        if name not in self._databases:
            self._databases[name] = Database(instance.launch.port, self._secret, name)
        return self._databases[name]

    def seed(self) -> None:
        """Fill every service with the data of all trials; a shared service is filled once."""
        seeds = {}
        for treatment, plan in self.plans.items():
            for seed in plan.seed:
                name = self.residency.serving[treatment][seed.node]
                seeds[name, seed.command] = seed
        for (name, _), seed in seeds.items():
            instance = self._instances[name]
            with named(f"seed of node '{seed.node}'", instance):
                instance.run(seed.command, seed.timeout_s, self._interrupted)

    def reset(self, treatment: str) -> None:
        """Make the treatment's services forget what the last trial left.

        Raises HookFailed where a service refuses, even after its last users had time to leave.
        """
        plan = self.plans[treatment]
        if plan.reset:
            server = self.instance(treatment, plan.database)
            with named(f"reset of the database ({'; '.join(plan.reset)})", server):
                for statement in plan.reset:
                    self._line(server).rows(statement)
        for node, instance in self.active(treatment).items():
            forget(node, instance, self._interrupted)

    def count(self, treatment: str) -> int | None:
        """Return the database's count of what the load has left; None where the plan has none."""
        plan = self.plans[treatment]
        if not plan.count:
            return None
        server = self.instance(treatment, plan.database)
        with named(f"count of the database ({plan.count})", server):
            return int(self._line(server).rows(plan.count)[0][0])

    def counts(self, treatment: str) -> dict[str, dict[str, Any]]:
        """Return what the treatment's services counted since their reset, by node."""
        return {
            node: ask(instance.launch.control_port, instance.launch.spec.counts)
            for node, instance in self.active(treatment).items()
            if instance.launch.spec.counts
        }

    def activate(self, treatment: str) -> None:
        """Apply and check the treatment's settings; the services of others stay as they are.

        None is paused: it could hold a lock that the treatment's services need.

        Raises SettingRefused where a service reports no value or another than the treatment's, and
        ServiceFailed where a service, or one of its processes, has died.
        """
        active = self.active(treatment)
        self.check_alive(treatment)
        self._follow(active)
        for name, lost in self.lost(treatment).items():
            log = self._instances[name].log()
            raise ServiceFailed(name, f"lost {lost} since it was started", log)
        self.reported[treatment] = agree(self.plans[treatment], active, self._line)

    def _follow(self, active: Mapping[str, Instance]) -> None:
        """Follow the servers of commands that have ended since the last look."""
        for instance in active.values():
            if instance.has_left():
                name = instance.launch.labels.service
                self._tell(f"{name}: {instance.follow()}")
                self._lasting[name] = _lasting(instance, ProcessTable())

    def check_alive(self, treatment: str) -> None:
        """Raise ServiceFailed, with the log, when a service of the treatment has ended."""
        refuse_dead(self.active(treatment))

    def lost(self, treatment: str) -> dict[str, str]:
        """Return in words the processes that running services have lost, by service."""
        lost = {}
        for instance in self.active(treatment).values():
            name = instance.launch.labels.service
            ended = [
                f"{process.pid} ({masked(command)[:60].strip()})"
                for process, command in self._lasting.get(name, {}).items()
                if not is_alive(process)
            ]
            # The first process replaces its children: the service is no longer the same.
            if ended and not instance.exit_reason():
                lost[name] = f"process {', '.join(ended)}"
        return lost

    def end(self) -> None:
        """Stop everything; remove logs, and the data that stores would have begun with."""
        self.stop()
        for stack in (self.stack, kept_by(self.stack)):
            self.backend.clear(stack)

    def stop(self) -> None:
        """Stop everything, dependents first; services that nobody needs any more end together.

        After an interrupt they have 2 s to end.
        """
        for database in self._databases.values():
            database.close()
        self._databases.clear()
        self._lasting.clear()
        needs = {item.name: set(item.needs.values()) for item in self.residency.residents}
        end = partial(stopped, interrupted=self._interrupted)
        while self._instances:
            needed = set().union(*(needs[name] for name in self._instances))
            free = [name for name in self._instances if name not in needed]
            ending = {name: self._instances.pop(name) for name in free}
            with ThreadPoolExecutor(len(ending)) as pool:
                for name, problem in zip(ending, pool.map(end, ending.values()), strict=True):
                    if problem:
                        self._tell(f"{name}: {problem}")
        while self._ports:
            self._ports.pop().close()


def _lasting(instance: Instance, table: ProcessTable) -> dict[psutil.Process, str]:
    """Return the processes of a service that are to stay, with their commands; none if it died."""
    try:
        return members(instance.meter().members(table), instance.launch.spec.lasting)
    except OSError:
        return {}


def stopped(instance: Instance, interrupted: Interrupted = never) -> str:
    """Stop a service; return a sentence where that took long, or where its port is still used."""
    began, port = time.monotonic(), instance.launch.port
    was_killed = instance.stop(interrupted=interrupted)
    took_s = time.monotonic() - began
    # The kernel closes the sockets of a large process some time after it was killed.
    until = time.monotonic() + CLOSED_WITHIN_S
    while (is_used := bool(owners({port}))) and time.monotonic() < until:
        time.sleep(0.05)
    if is_used:
        return f"a process that the lab cannot end still listens at its port {port}: end it"
    how = ", and then had to be killed" * was_killed
    return f"it took {took_s:.1f} s to end{how}" * (was_killed or took_s > SLOW_S)


def stand(plan: StackPlan, backend: Backend, places: Placement, tell: Tell) -> dict[str, str]:
    """Start a stack that outlives this process; return the address of each node by name."""
    identity = f"up-{secrets.token_hex(3)}"
    residents = Residents(backend, {"up": plan}, places, identity, "up", tell)
    try:
        residents.prepare()
        residents.start()
        residents.activate("up")
    except BaseException:
        residents.end()
        raise
    addresses = {}
    for name, instance in residents.active("up").items():
        scheme = "http://" if instance.launch.spec.health.http else ""
        addresses[name] = f"{scheme}{HOST}:{instance.launch.port}"
    return addresses
