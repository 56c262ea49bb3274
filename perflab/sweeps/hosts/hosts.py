"""Hosts of a sweep: whether they are alike in what must be equal, and the store of their output.

Runs and other output of cells are copied to a folder or an fsspec address, and back. Each copy has
a list of its files with their SHA-256. In a folder a copy gets its name by a rename once all of it
is on the disk. Elsewhere, where folders cannot be renamed, its list is written last. A copy without
a list is unfinished and is not read. A copy is never overwritten.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from perflab.errors import ClusterError, PerflabError, StoreError
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
# The folder of runs in a store.
RUNS = "runs"
SECRET = re.compile(r"@|\?")


class Store:
    """A folder, or another place that fsspec opens by its address, such as ``s3://bucket/place``.

    An address must not hold keys: the package that opens it finds them elsewhere. An address with a
    key raises a StoreError, which does not repeat the key.
    """

    def __init__(self, address: str) -> None:
        if "://" in address and SECRET.search(address):
            raise StoreError(
                f"{address.partition(':')[0]}://...: users, keys and options in an address would "
                "stand in journals and lists of processes; give them by the environment"
            )
        self.address = address if "://" in address else str(Path(address).absolute())
        with self._explained():
            import fsspec

            self._files, root = fsspec.core.url_to_fs(self.address)
        self._root = str(root).rstrip("/")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn every error of a file system into a StoreError that says what to do."""
        try:
            yield
        except PerflabError:
            raise
        # fsspec passes on the errors of each client; those of botocore are no OSError.
        except Exception as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise StoreError(
                f"{self.address}: cannot be used ({why}); what was to be copied is where it was. "
                "Check the address, and who may read and write there"
            ) from error

    @property
    def _is_folder(self) -> bool:
        return "file" in self._files.protocol

    def check_writable(self) -> None:
        """Write a file and remove it; StoreError where that is not possible."""
        probe = f"{self._root}/.tmp-{secrets.token_hex(4)}"
        with self._explained():
            if self._is_folder:
                Path(self._root).mkdir(parents=True, exist_ok=True)
            self._files.pipe_file(probe, b"perflab")
            self._files.rm_file(probe)

    def put(self, folder: Path, place: str) -> str:
        """Copy a folder to a place, unless the same copy is there, and return its address.

        StoreError where it cannot be written, or another copy is there.
        """
        files = _files_of(folder)
        digests = {name: sha256_of(path) for name, path in files.items()}
        with self._explained():
            stored = self._listed(place)
            if stored is None:
                copy = self._put_folder if self._is_folder else self._put_files
                copy(files, json.dumps(digests, indent=1).encode(), place)
            elif stored != digests:
                raise StoreError(f"{self.address}: has something else as {place} already")
        return f"{self.address.rstrip('/')}/{place}"

    def _put_folder(self, files: Mapping[str, Path], listed: bytes, place: str) -> None:
        target = Path(self._root, place)
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(target) as temporary:
            for name, path in files.items():
                copy = temporary / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                with path.open("rb") as source:
                    write_file(copy, partial(shutil.copyfileobj, source))
            write_file(temporary / LIST, lambda file: file.write(listed))

    def _put_files(self, files: Mapping[str, Path], listed: bytes, place: str) -> None:
        for name, path in files.items():
            self._files.put_file(str(path), f"{self._root}/{place}/{name}")
        self._files.pipe_file(f"{self._root}/{place}/{LIST}", listed)

    def names(self, of: str) -> list[str]:
        """Return the names of all whole copies below a place, in order."""
        with self._explained():
            # A cached listing lacks what others have copied meanwhile.
            self._files.invalidate_cache()
            try:
                paths = self._files.ls(f"{self._root}/{of}", detail=False)
            except FileNotFoundError:
                return []
            names = sorted(PurePosixPath(path).name for path in paths)
            visible = (name for name in names if not name.startswith("."))
            return [name for name in visible if self._listed(f"{of}/{name}") is not None]

    def get(self, place: str, folder: Path) -> None:
        """Copy a place into a new folder, whole and unchanged, or not at all.

        StoreError where no whole copy is there, or a file was changed.
        """
        with self._explained():
            digests = self._listed(place)
            if digests is None:
                raise StoreError(f"{self.address}: nothing has been copied to {place}")
            folder.parent.mkdir(parents=True, exist_ok=True)
            with whole_folder(folder) as temporary:
                for name, digest in digests.items():
                    copy = _inside(temporary, name)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    self._files.get_file(f"{self._root}/{place}/{name}", str(copy))
                    if sha256_of(copy) != digest:
                        raise StoreError(
                            f"{self.address}: {place}/{name} was changed since it was copied"
                        )

    def _listed(self, place: str) -> dict[str, str] | None:
        """Return the SHA-256 of each file of a copy; None where there is no whole copy."""
        try:
            listed: Any = json.loads(self._files.cat_file(f"{self._root}/{place}/{LIST}"))
        except FileNotFoundError:
            return None
        return {str(name): str(digest) for name, digest in listed.items()}


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


def _inside(folder: Path, name: str) -> Path:
    """Return the path of a listed file; refuse one outside the folder, as lists may be forged."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise StoreError(f"'{name}' is listed in a {LIST} and lies outside of its folder")
    return folder.joinpath(*parts)


BENCH = "bench"
GIB = 1 << 30
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

    try:
        Store(store).check_writable()
        fault = ""
    except StoreError as error:
        fault = str(error)
    return {
        **host_facts(cells),
        "store": fault,
        "worker": {
            "threads": dask_worker.state.nthreads,
            BENCH: dask_worker.state.total_resources.get(BENCH, 0),
            "profiler": bool(dask.config.get("distributed.worker.profile.enabled")),
        },
    }


def unfit(here: Mapping[str, Any], workers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in sentences why workers, by their facts, cannot share this host's sweep."""
    faults = [f"{worker['host']}: {worker['store']}" for worker in workers if worker["store"]]
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
