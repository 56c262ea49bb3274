"""Checks before a sweep that all hosts are alike in what must be equal."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from perflab.errors import ClusterError, PerflabError, StoreError
from perflab.host import facts
from perflab.host.facts import sources
from perflab.paths import lock_path
from perflab.recordings.sameness import differences
from perflab.sweeps.cells import Cell, systems_of
from perflab.sweeps.folder import digests_of_notebooks
from perflab.sweeps.hosts.store import Store
from perflab.systems import experiment

BENCH = "bench"
NAME = "PERFLAB_HOST"
GIB = 1 << 30
SHOWN = 6
# Facts that must be as on the host of the sweep, and those that must be equal on all workers.
AS_HERE, ALIKE = ("code", "notebooks", "parameters"), ("python", "packages", "machine")


def check_installed() -> None:
    """Refuse where Dask distributed is not installed, and name the extra to install."""
    if find_spec("distributed") is None:
        raise ClusterError(
            "Dask distributed is not installed; run 'make setup', or install 'perflab[cluster]'"
        )


def host_name() -> str:
    """Return the name of this host in records of sweeps (``PERFLAB_HOST`` overrides it)."""
    return os.environ.get(NAME) or socket.gethostname()


def host_facts(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the facts that decide whether measurements of this host compare with those of others.

    ``code`` has a digest for each place of the sources and each lock file. ``parameters`` has a
    digest of the complete parameters of all cells, as this host checks them.
    """
    machine = facts.machine()
    return {
        "host": host_name(),
        "place": [facts.session()["boot_id"], str(lock_path())],
        "code": sources(systems_of(cells)),
        "notebooks": digests_of_notebooks(cells),
        "parameters": {"digest": _parameters(cells)},
        "python": sys.version.split()[0],
        "packages": facts.installed(),
        # Firmware takes a little of the memory, and not the same on each machine.
        "machine": {**machine, "memory_bytes": round(machine["memory_bytes"] / GIB) * GIB},
    }


def _parameters(cells: Sequence[Cell]) -> str:
    try:
        checked = [
            experiment(cell.notebook).check(dict(cell.parameters)).model_dump(mode="json")
            for cell in cells
        ]
    except PerflabError as error:
        return str(error)
    return hashlib.sha256(json.dumps(checked, sort_keys=True).encode()).hexdigest()


def worker_facts(cells: Sequence[Cell], store: str, dask_worker: Any) -> dict[str, Any]:
    """Return the facts of a worker's host, its start options, and why it cannot use the store.

    This runs on the worker, because keys and mounts are those of each host.
    """
    import dask

    return {
        **host_facts(cells),
        "store": _fault_of(store),
        "worker": {
            "threads": dask_worker.state.nthreads,
            BENCH: dask_worker.state.total_resources.get(BENCH, 0),
            "profiler": bool(dask.config.get("distributed.worker.profile.enabled")),
        },
    }


def _fault_of(store: str) -> str:
    try:
        Store(store).check_writable()
    except StoreError as error:
        return str(error)
    return ""


def unfit(here: Mapping[str, Any], workers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in sentences why these hosts cannot carry out the sweep together.

    ``here`` is of :func:`host_facts` on the host of the sweep, whose machine does not matter.
    ``workers`` are of :func:`worker_facts`.
    """
    faults = [f"{worker['host']}: {worker['store']}" for worker in workers if worker["store"]]
    return [*_started_wrongly(workers), *_same_twice(workers), *_differing(here, workers), *faults]


def _started_wrongly(workers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for worker in workers:
        if worker["worker"] != {"threads": 1, BENCH: 1, "profiler": False}:
            options = ", ".join(f"{name} {value}" for name, value in worker["worker"].items())
            yield (
                f"{worker['host']}: its worker has {options}; it needs one thread, one {BENCH} and "
                "no profiler: start it with 'perflab worker'"
            )


def _same_twice(workers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for name, words in (("host", "the name"), ("place", "the machine and lock")):
        hosts: dict[str, str] = {}
        for worker in workers:
            key = str(worker[name])
            if key in hosts:
                yield f"{worker['host']}: has {words} of {hosts[key]}; a host has one worker"
            hosts.setdefault(key, worker["host"])


def _differing(here: Mapping[str, Any], workers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for worker in workers:
        pairs = [(name, here, "here") for name in AS_HERE]
        pairs += [(name, workers[0], workers[0]["host"]) for name in ALIKE]
        for name, other, whose in pairs:
            listed = [str(item) for item in differences(other[name], worker[name], name)]
            if listed:
                more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
                yield f"{worker['host']}: {'; '.join(listed[:SHOWN])}{more} ({whose} -> there)"
