"""Starting residents: their ports, addresses, cores and limits, and whose they are."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from perflab.host.placing import Placement
from perflab.stacks.backend import HOST, Backend, Instance, Launch, free_port
from perflab.stacks.health import wait_healthy
from perflab.stacks.labels import Labels
from perflab.stacks.patience import Interrupted
from perflab.stacks.plan import Resident
from perflab.stacks.process_backend import ProcessBackend
from perflab.stacks.spec import load_service

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Launcher:
    """Starts the residents of one stack; ``secret`` is the password that they share."""

    backend: Backend
    placement: Placement
    stack: str
    kind: str
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    def labels(self, service: str, port: int = 0, log: str = "") -> Labels:
        """Return the labels of something of this stack."""
        return Labels(self.stack, service, self.kind, port, log)

    def start_all(
        self,
        residents: Sequence[Resident],
        running: dict[str, Instance],
        tell: Tell,
        interrupted: Interrupted,
    ) -> None:
        """Start residents, dependencies first; those of one level start side by side.

        Parameters
        ----------
        running : dict
            Takes every instance by its name as soon as it is started, healthy or not.

        Raises
        ------
        ServiceFailed
            One died or never became healthy.
        RunInterrupted
            The user wants to end.
        """
        waiting = list(residents)
        while waiting:
            level = [item for item in waiting if set(item.needs.values()) <= set(running)]
            for resident in level:
                tell(f"starting {resident.name}")
                running[resident.name] = self.backend.start(self._launch(resident, running))
            wait_healthy([resident.name for resident in level], running, interrupted)
            waiting = [item for item in waiting if item not in level]

    def _launch(self, resident: Resident, running: Mapping[str, Instance]) -> Launch:
        spec = load_service(resident.service)
        port = free_port()
        log = ""
        if isinstance(self.backend, ProcessBackend):
            log = str(self.backend.log_path(self.stack, resident.name))
        return Launch(
            spec=spec,
            labels=self.labels(resident.name, port, log),
            settings=spec.resolve(resident.settings),
            addresses={
                role: (HOST, running[name].launch.port) for role, name in resident.needs.items()
            },
            port=port,
            control_port=free_port() if spec.control else port,
            cores=self.placement.cores_of(resident.placement),
            secret=self.secret,
            cpus=resident.cpus,
        )
