"""Hosts of a sweep: whether they are alike in what must be equal, and the folder of their results.

Runs and other output of cells are copied to a folder. Each copy has a list of its files with their
SHA-256, and gets its name by a rename once all of it is on the disk. A copy is never overwritten.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from perflab.errors import FolderError, PerflabError
from perflab.host import facts
from perflab.host.facts import sources
from perflab.host.files import whole_folder, write_file
from perflab.paths import lock_path
from perflab.recordings.files import sha256_of
from perflab.recordings.sameness import differences
from perflab.sweeps.cells import Cell, systems_of
from perflab.sweeps.folder import digests_of_notebooks
from perflab.systems import experiment

LIST = "copy.json"
# The folder of runs in the one of results.
RUNS = "runs"
BENCH = "bench"
GIB = 1 << 30
# Facts that must be as on the host of the sweep, and those that must be equal on all workers.
AS_HERE, ALIKE = ("code", "notebooks", "parameters"), ("python", "packages", "machine")


class SharedFolder:
    """A folder that all hosts see."""

    def __init__(self, folder: str) -> None:
        if "://" in folder:
            scheme = folder.partition("://")[0]
            raise FolderError(
                f"{scheme}://... is an address; results go to a folder that all hosts see: mount "
                "the place, and give its folder"
            )
        self.folder = Path(folder).absolute()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn an error of the file system or in a list into a FolderError that says what to do."""
        try:
            yield
        except (OSError, ValueError, AttributeError) as error:
            raise FolderError(
                f"{self.folder}: cannot be used ({error}); what was to be copied is where it was. "
                "Check the folder, and who may read and write there"
            ) from error

    def check_writable(self) -> None:
        """Write a file and remove it; FolderError where that is not possible."""
        probe = self.folder / f".tmp-{secrets.token_hex(4)}"
        with self._explained():
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"perflab")
            probe.unlink()

    def put(self, folder: Path, place: str) -> str:
        """Copy a folder to a place, unless the same copy is there, and return its path.

        FolderError where it cannot be written, or another copy is there.
        """
        files = _files_of(folder)
        digests = {name: sha256_of(path) for name, path in files.items()}
        target = self.folder / place
        with self._explained():
            there = self._digests(place)
            if there not in (None, digests):
                raise FolderError(f"{self.folder}: has something else as {place} already")
            if there is None:
                target.parent.mkdir(parents=True, exist_ok=True)
                with whole_folder(target) as temporary:
                    for name, path in files.items():
                        _copy(path, temporary / name)
                    listed = json.dumps(digests, indent=1).encode()
                    write_file(temporary / LIST, lambda file: file.write(listed))
        return str(target)

    def _digests(self, place: str) -> dict[str, str] | None:
        """Return the SHA-256 of each file of a copy; None where there is no whole copy."""
        try:
            listed: Any = json.loads((self.folder / place / LIST).read_bytes())
        except FileNotFoundError:
            return None
        return {str(name): str(digest) for name, digest in listed.items()}


def _copy(path: Path, target: Path) -> None:
    """Copy a file to a place that has none, and flush it to the disk."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as source:
        write_file(target, partial(shutil.copyfileobj, source))


def _files_of(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by name, without links, unfinished files and the list."""
    return {
        str(path.relative_to(folder)): path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not path.is_symlink()
        and not path.name.startswith(".tmp-")
        and path != folder / LIST
    }


def host_name() -> str:
    """Return the name of this host in records of sweeps (``PERFLAB_HOST`` overrides it)."""
    return os.environ.get("PERFLAB_HOST") or socket.gethostname()


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
    checked = []
    try:
        for cell in cells:
            asked = experiment(cell.notebook)
            parameters = asked.check(dict(cell.parameters))
            asked.plan(parameters)
            checked.append(parameters.model_dump(mode="json"))
    except PerflabError as error:
        return str(error)
    return hashlib.sha256(json.dumps(checked, sort_keys=True).encode()).hexdigest()


def worker_facts(cells: Sequence[Cell], results: str, dask_worker: Any) -> dict[str, Any]:
    """Return the facts of a worker's host, its start options, and why it cannot write results.

    This runs on the worker, because keys and mounts are those of each host.
    """
    import dask

    try:
        SharedFolder(results).check_writable()
        fault = ""
    except FolderError as error:
        fault = str(error)
    return {
        **host_facts(cells),
        "results": fault,
        "worker": {
            "threads": dask_worker.state.nthreads,
            BENCH: dask_worker.state.total_resources.get(BENCH, 0),
            "profiler": bool(dask.config.get("distributed.worker.profile.enabled")),
        },
    }


def unfit(here: Mapping[str, Any], workers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in sentences why workers, by their facts, cannot share this host's sweep."""
    faults = [f"{worker['host']}: {worker['results']}" for worker in workers if worker["results"]]
    return [*_started_wrongly(workers), *_same_twice(workers), *_differing(here, workers), *faults]


def _started_wrongly(workers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
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
                yield f"{worker['host']}: {'; '.join(listed)} ({whose} -> there)"
