"""What a running service has lost since its start: processes, and those killed for their memory."""

from __future__ import annotations

from collections.abc import Iterable

from perflab.stacks.backend import Instance, Launch
from perflab.stacks.kin import Member


def loss(instance: Instance, lasting: Iterable[Member]) -> str:
    """Say which processes a service has lost; empty for none, and for one that has ended itself.

    A first process replaces its children: what the service was at its start it is no more.
    """
    gone = [member for member in lasting if not member.is_alive]
    kills = instance.memory_kills()
    if not (gone or kills) or instance.exit_reason():
        return ""
    lost = "process " + ", ".join(map(str, gone)) if gone else f"{kills} of its processes"
    return with_memory(lost, instance.launch, kills)


def with_memory(what: str, launch: Launch, kills: int) -> str:
    """Add to how a service suffered that its memory was the cause, if the kernel killed any."""
    if not kills:
        return what
    return (
        f"{what}: out of memory, killed by the kernel at its limit of {launch.memory_mib} MiB "
        "(memory_mib of its node)"
    )
