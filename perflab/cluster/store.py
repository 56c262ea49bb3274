"""A store that all hosts share: what is published there is whole, or is not there."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from perflab.cluster.published_files import MARKER, files_of, inside, listed, marker, sha256
from perflab.cluster.store_address import check_address, explained, opened
from perflab.durable import sync_folder, whole_folder, write_file
from perflab.errors import StoreError

NOTHING_YET = "nothing was published"


class Store:
    """A folder, or whatever else fsspec opens by its address.

    In a folder, what is published gets its name by a rename. Object stores have none: there every
    file is put only where none is (If-None-Match), the marker comes last, and a reader believes
    only what has one.

    Parameters
    ----------
    url : str
        A path, or an address such as ``s3://bucket/place``. Endpoint and keys of S3 come from where
        botocore looks for them (``AWS_ENDPOINT_URL``, ``AWS_ACCESS_KEY_ID``...).

    Raises
    ------
    StoreError
        It cannot be opened, or its address holds a key.
    """

    def __init__(self, url: str) -> None:
        check_address(url)
        self.url = url
        with explained(url, NOTHING_YET):
            self._system, self._root = opened(url)

    @property
    def is_folder(self) -> bool:
        """Return whether it is a folder that this host sees."""
        return "file" in _protocols(self._system)

    def check_writable(self) -> None:
        """Write a file and take it away again; an object store must not let it be overwritten.

        Raises
        ------
        StoreError
            It cannot be written, or would let one host overwrite what another has published.
        """
        probe = f"{self._root}/.tmp-{secrets.token_hex(4)}"
        with explained(self.url, NOTHING_YET):
            if self.is_folder:
                Path(self._root).mkdir(parents=True, exist_ok=True)
            self._system.pipe_file(probe, b"perflab")
            try:
                safe = self.is_folder or self._refuses_another(probe)
            finally:
                self._system.rm_file(probe)
        if not safe:
            raise StoreError(
                f"{self.url}: overwrites what is there though it was asked not to (If-None-Match); "
                f"{NOTHING_YET}. Way out: a folder, or a store that keeps to conditional writes"
            )

    def _refuses_another(self, path: str) -> bool:
        try:
            self._system.pipe_file(path, b"another", mode="create")
        except FileExistsError:
            return True
        return False

    def published(self, place: str) -> dict[str, str] | None:
        """Return the SHA-256 of each file that was published at a place; None where none was."""
        with explained(self.url, NOTHING_YET):
            try:
                content = self._system.cat_file(f"{self._root}/{place}/{MARKER}")
            except FileNotFoundError:
                return None
            return listed(content)

    def names(self, of: str) -> list[str]:
        """Return the names of all that is published below a place, in order."""
        with explained(self.url, "nothing was read", again=""):
            # What other hosts have published meanwhile is not in a list that was kept.
            self._system.invalidate_cache()
            try:
                found = self._system.ls(f"{self._root}/{of}", detail=False)
            except FileNotFoundError:
                return []
        names = sorted(str(path).rstrip("/").rpartition("/")[2] for path in found)
        return [
            name
            for name in names
            if not name.startswith(".") and self.published(f"{of}/{name}") is not None
        ]

    def publish(self, folder: Path, place: str) -> str:
        """Publish a folder, and return its address; what stands there already stays.

        Raises
        ------
        StoreError
            It could not be written, or another folder has been published at this place.
        """
        files = files_of(folder)
        digests = {name: sha256(path) for name, path in files.items()}
        there = self.published(place)
        if there is not None and there != digests:
            raise self._taken(place)
        if there is None:
            with explained(self.url, f"all of it is still in {folder}"):
                publish = self._rename_in if self.is_folder else self._mark
                publish(files, digests, place)
        return self.address(place)

    def address(self, place: str) -> str:
        """Return the address at which a place can be read."""
        return f"{self._root if self.is_folder else self.url.rstrip('/')}/{place}"

    def read(self, place: str) -> bytes:
        """Return what a published file holds.

        Raises
        ------
        StoreError
            There is none, or it cannot be read.
        """
        with explained(self.url, NOTHING_YET):
            content: bytes = self._system.cat_file(f"{self._root}/{place}")
        return content

    def clear(self, place: str) -> None:
        """Remove what an attempt that has ended left half at a place; what is published stays.

        Raises
        ------
        StoreError
            It cannot be removed.
        """
        final = Path(f"{self._root}/{place}")
        if self.is_folder:
            for half in final.parent.glob(f".tmp-{final.name}-*"):
                shutil.rmtree(half, ignore_errors=True)
        elif self.published(place) is None:
            with explained(self.url, NOTHING_YET), contextlib.suppress(FileNotFoundError):
                self._system.invalidate_cache()
                self._system.rm(f"{self._root}/{place}", recursive=True)

    def _taken(self, place: str) -> StoreError:
        return StoreError(
            f"{self.url}: has something else as {place} already; give another --store, or move "
            "that away"
        )

    def _rename_in(self, files: Mapping[str, Path], digests: Mapping[str, str], place: str) -> None:
        final = Path(self._root, place)
        temporary = final.with_name(f".tmp-{final.name}-{secrets.token_hex(4)}")
        try:
            for name, path in files.items():
                copy = temporary / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                with path.open("rb") as source:
                    write_file(copy, partial(shutil.copyfileobj, source))
            write_file(temporary / MARKER, lambda file: file.write(marker(digests)))
            temporary.rename(final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_folder(final.parent)

    def _mark(self, files: Mapping[str, Path], digests: Mapping[str, str], place: str) -> None:
        target = f"{self._root}/{place}"
        for name, path in files.items():
            self._put(path, f"{target}/{name}", digests[name])
        # A put whose answer was lost is sent again by the client, and finds its own marker.
        with contextlib.suppress(FileExistsError):
            self._system.pipe_file(f"{target}/{MARKER}", marker(digests), mode="create")
        if self.published(place) != digests:
            raise self._taken(place)

    def _put(self, path: Path, target: str, digest: str) -> None:
        """Put a file where none is; what a try that was broken off has left there must equal it."""
        # Looked for first: a gateway that refuses a file before it has read it cuts the connection.
        if not self._system.exists(target):
            with contextlib.suppress(FileExistsError):
                self._system.put_file(str(path), target, mode="create")
                return
        with self._system.open(target, "rb") as there:
            same = hashlib.file_digest(there, "sha256").hexdigest() == digest
        if not same:
            raise StoreError(
                f"{target}: is something else, which another host is publishing or left when it "
                f"was broken off; remove what has no {MARKER} beside it, or give another --store"
            )

    def fetch(self, place: str, folder: Path) -> None:
        """Bring what is published at a place into a new folder: all of it as it was, or nothing.

        Raises
        ------
        StoreError
            Nothing is published there, it cannot be read, or a file is not what was published.
        """
        digests = self.published(place)
        if digests is None:
            raise StoreError(f"{self.url}: nothing has been published as {place}")
        with explained(self.url, f"{folder} was not made", again=""):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with whole_folder(folder) as temporary:
                for name, digest in digests.items():
                    self._bring(f"{place}/{name}", inside(temporary, name), digest)

    def _bring(self, source: str, to: Path, digest: str) -> None:
        to.parent.mkdir(parents=True, exist_ok=True)
        self._system.get_file(f"{self._root}/{source}", str(to))
        if sha256(to) != digest:
            raise StoreError(
                f"{self.url}: {source} is not what was published (its SHA-256 is another): it was "
                "changed since; take it from the host that measured it"
            )


def store_fault(url: str) -> str:
    """Return why a store cannot be used, or an empty string; runs on every worker."""
    try:
        Store(url).check_writable()
    except StoreError as error:
        return str(error)
    return ""


def _protocols(system: Any) -> tuple[str, ...]:
    named = system.protocol
    return (named,) if isinstance(named, str) else tuple(named)
