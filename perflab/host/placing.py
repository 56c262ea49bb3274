"""Cores for each role, by the number of cores: load and services should share none."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

from perflab.parameters import FrozenModel

# The roles of a stack's services; the other roles are the lab's own.
ServiceRole = Literal["services", "database", "link"]


class Placement(FrozenModel):
    """Cores for each role; ``shared`` says which roles this machine cannot keep apart."""

    services: tuple[int, ...]
    database: tuple[int, ...]
    link: tuple[int, ...]
    client: tuple[int, ...]
    sampler: tuple[int, ...]
    shared: str = ""

    @property
    def client_apart(self) -> bool:
        """Whether no service shares a core with the client."""
        return not {*self.services, *self.database, *self.link} & {*self.client}


def placement(cores: Iterable[int] | None = None) -> Placement:
    """Choose cores for every role from ``cores`` (None: those of this process's affinity).

    ======  ========  ========  =====  ======  =======
    cores   services  database  link   client  sampler
    ======  ========  ========  =====  ======  =======
    1       0         0         0      0       0
    2-3     0         0         0      1       1
    4-5     0-1       2         2      3       3
    6-7     0-1       2         3      4       5
    8+      0-3       4..n-4    n-3    n-2     n-1
    ======  ========  ========  =====  ======  =======
    """
    available = tuple(sorted(cores if cores is not None else os.sched_getaffinity(0)))
    count = len(available)
    shared = ""
    if count == 1:
        services = database = link = client = sampler = available
        shared = "one core: services, database and load compete; no result here is trustworthy"
    elif count <= 3:
        services = database = link = available[:1]
        client = sampler = available[1:2]
        shared = (
            f"{count} cores: service, database and link share core {services[0]}; "
            f"client, sampler and conductor share core {client[0]}"
        )
    elif count <= 5:
        services, database, client = available[0:2], available[2:3], available[3:4]
        link, sampler = database, client
        shared = (
            f"{count} cores: database and link share core {database[0]}; "
            f"client and sampler share core {client[0]}"
        )
    else:
        ends = (0, 2, 3, 4, 5, 6) if count <= 7 else (0, 4, count - 3, count - 2, count - 1, count)
        services, database, link, client, sampler = (
            available[begin:end] for begin, end in pairwise(ends)
        )
    return Placement(
        services=services, database=database, link=link, client=client, sampler=sampler,
        shared=shared,
    )  # fmt: skip
