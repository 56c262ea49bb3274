"""Labels on everything the lab starts, so that clean-up finds exactly ours.

Containers, volumes and images carry them as Docker labels; plain processes carry them in their
environment, which the kernel keeps readable until the process ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from perflab.paths import lock_path

PROJECT = "perflab"


@dataclass(frozen=True)
class Labels:
    """Whose a service is.

    ``kind`` is ``run`` for a measurement's services (removed when the measurement is gone) and
    ``up`` for services that a user started to keep. ``scope`` is the path of the host lock: runs
    under different locks never clean up after each other.
    """

    stack: str
    service: str
    kind: str
    port: int = 0
    log: str = ""

    def as_docker(self) -> dict[str, str]:
        """Return the labels of a container or volume."""
        return {
            "perflab.project": PROJECT,
            "perflab.stack": self.stack,
            "perflab.service": self.service,
            "perflab.kind": self.kind,
            "perflab.port": str(self.port),
            "perflab.scope": str(lock_path()),
        }

    def as_environment(self) -> dict[str, str]:
        """Return the same labels as environment variables of a process."""
        return {
            "PERFLAB_PROJECT": PROJECT,
            "PERFLAB_STACK": self.stack,
            "PERFLAB_SERVICE": self.service,
            "PERFLAB_KIND": self.kind,
            "PERFLAB_PORT": str(self.port),
            "PERFLAB_LOG": self.log,
            "PERFLAB_SCOPE": str(lock_path()),
        }
