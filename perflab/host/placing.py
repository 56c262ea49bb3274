"""Which cores do what: a table by core count, so that load and services do not share a core."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

# What a service of a stack can be placed as; the other roles are the lab's own.
ServiceRole = Literal["services", "database", "link"]
Role = Literal[ServiceRole, "client", "sampler", "kernel"]
SERVICE_ROLES: tuple[ServiceRole, ...] = get_args(ServiceRole)


class Placement(BaseModel):
    """Cores for each role, and what this machine cannot keep apart."""

    model_config = ConfigDict(frozen=True)

    services: tuple[int, ...]
    database: tuple[int, ...]
    link: tuple[int, ...]
    client: tuple[int, ...]
    sampler: tuple[int, ...]
    kernel: tuple[int, ...]
    shared: str = ""

    @property
    def client_apart(self) -> bool:
        """Whether no service shares a core with the client."""
        return not {*self.services, *self.database, *self.link} & {*self.client}

    def cores_of(self, role: Role) -> tuple[int, ...]:
        """Return the cores of a role."""
        cores: tuple[int, ...] = getattr(self, role)
        return cores


def placement(cores: Iterable[int] | None = None) -> Placement:
    """Choose cores for every role from the ones this process may use.

    ======  ========  ========  =====  ======  ===================
    cores   services  database  link   client  sampler, kernel
    ======  ========  ========  =====  ======  ===================
    1       0         0         0      0       0
    2-3     0         0         0      1       1
    4-5     0-1       2         2      3       3
    6-7     0-1       2         3      4       5
    8+      0-3       4..n-4    n-3    n-2     n-1
    ======  ========  ========  =====  ======  ===================

    Parameters
    ----------
    cores : iterable of int, optional
        Core numbers; by default those of this process's affinity.
    """
    available = tuple(sorted(cores if cores is not None else os.sched_getaffinity(0)))
    count = len(available)
    if count == 1:
        everything = available
        return _placed(
            everything,
            everything,
            everything,
            everything,
            everything,
            "one core: services, database and load compete; no result here is trustworthy",
        )
    if count <= 3:
        first, last = available[:1], available[1:2]
        return _placed(
            first,
            first,
            first,
            last,
            last,
            f"{count} cores: service, database and link share core {first[0]}; "
            f"client, sampler and conductor share core {last[0]}",
        )
    if count <= 5:
        return _placed(
            available[0:2],
            available[2:3],
            available[2:3],
            available[3:4],
            available[3:4],
            f"{count} cores: database and link share core {available[2]}; "
            f"client and sampler share core {available[3]}",
        )
    if count <= 7:
        return _placed(
            available[0:2], available[2:3], available[3:4], available[4:5], available[5:6], ""
        )
    return _placed(
        available[0:4], available[4:-3], available[-3:-2], available[-2:-1], available[-1:], ""
    )


def _placed(
    services: tuple[int, ...],
    database: tuple[int, ...],
    link: tuple[int, ...],
    client: tuple[int, ...],
    sampler: tuple[int, ...],
    shared: str,
) -> Placement:
    return Placement(
        services=services,
        database=database,
        link=link,
        client=client,
        sampler=sampler,
        kernel=sampler,
        shared=shared,
    )
