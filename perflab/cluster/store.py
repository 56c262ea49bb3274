"""A store that all hosts share: what is published there is whole, or is not there."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from perflab.durable import sync_folder, write_file
from perflab.errors import StoreError

# The last file of a published folder: what lies there without it was broken off.
MARKER = "published.json"


class Store:
    """A folder, or whatever else fsspec opens by its address.

    In a folder, what is published gets its name by a rename. Object stores have none: there the
    marker comes last, and a reader believes only what has one.

    Parameters
    ----------
    url : str
        A path, or an address such as ``s3://bucket/place``. S3 is read and written by pyarrow: keys
        and endpoint come from the environment (``AWS_ENDPOINT_URL``) or stand in the address.

    Raises
    ------
    StoreError
        It cannot be opened.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        with _explained(url, "nothing was published"):
            self._system, self._root = _opened(url)

    @property
    def is_folder(self) -> bool:
        """Return whether it is a folder that this host sees."""
        return "file" in _protocols(self._system)

    def check_writable(self) -> None:
        """Write a file and take it away again.

        Raises
        ------
        StoreError
            One of both failed.
        """
        probe = f"{self._root}/.tmp-{secrets.token_hex(4)}"
        with _explained(self.url, "nothing was published"):
            if self.is_folder:
                Path(self._root).mkdir(parents=True, exist_ok=True)
            self._system.pipe_file(probe, b"perflab")
            self._system.rm_file(probe)

    def published(self, place: str) -> dict[str, str] | None:
        """Return the SHA-256 of each file that was published at a place; None where none was."""
        marker = f"{self._root}/{place}/{MARKER}"
        with _explained(self.url, "nothing was published"):
            try:
                content = self._system.cat_file(marker)
            except FileNotFoundError:
                return None
        found: dict[str, str] = json.loads(content)["files"]
        return found

    def publish(self, folder: Path, place: str) -> str:
        """Publish a folder, and return its address; what stands there already stays.

        Raises
        ------
        StoreError
            It could not be written, or another folder has been published at this place.
        """
        files = {str(path.relative_to(folder)): path for path in _files(folder)}
        digests = {name: _sha256(path) for name, path in files.items()}
        there = self.published(place)
        if there is not None and there != digests:
            raise StoreError(
                f"{self.url}: has something else as {place} already; give another --store, or move "
                "that away"
            )
        if there is None:
            with _explained(self.url, f"all of it is still in {folder}"):
                publish = self._rename_in if self.is_folder else self._mark
                publish(files, _marker(digests), f"{self._root}/{place}")
        return self.address(place)

    def address(self, place: str) -> str:
        """Return the address at which a place can be read."""
        if self.is_folder:
            return f"{self._root}/{place}"
        return f"{self.url.partition('?')[0].rstrip('/')}/{place}"

    def read(self, place: str) -> bytes:
        """Return what a published file holds.

        Raises
        ------
        StoreError
            There is none, or it cannot be read.
        """
        with _explained(self.url, "nothing was published"):
            content: bytes = self._system.cat_file(f"{self._root}/{place}")
        return content

    def clear(self, place: str) -> None:
        """Remove what somebody who was lost left half at a place; what is published stays.

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
            with _explained(self.url, "nothing was published"), suppress(FileNotFoundError):
                self._system.rm(f"{self._root}/{place}", recursive=True)

    def _rename_in(self, files: dict[str, Path], marker: bytes, target: str) -> None:
        final = Path(target)
        temporary = final.with_name(f".tmp-{final.name}-{secrets.token_hex(4)}")
        try:
            for name, path in files.items():
                copy = temporary / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                with path.open("rb") as source:
                    write_file(copy, partial(shutil.copyfileobj, source))
            write_file(temporary / MARKER, lambda file: file.write(marker))
            temporary.rename(final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_folder(final.parent)

    def _mark(self, files: dict[str, Path], marker: bytes, target: str) -> None:
        for name, path in files.items():
            with path.open("rb") as source, self._system.open(f"{target}/{name}", "wb") as copy:
                shutil.copyfileobj(source, copy)
        self._system.pipe_file(f"{target}/{MARKER}", marker)


def absolute(url: str) -> str:
    """Return an address that means the same on every host: a path from the root."""
    return url if "://" in url else str(Path(url).absolute())


def _opened(url: str) -> tuple[Any, str]:
    if url.startswith("s3://"):
        from fsspec.implementations.arrow import ArrowFSWrapper
        from pyarrow.fs import FileSystem

        system, root = FileSystem.from_uri(url)
        return ArrowFSWrapper(system), root.rstrip("/")
    import fsspec

    opened, root = fsspec.core.url_to_fs(url)
    return opened, root.rstrip("/")


def _protocols(system: Any) -> tuple[str, ...]:
    named = system.protocol
    return (named,) if isinstance(named, str) else tuple(named)


@contextmanager
def _explained(url: str, kept: str) -> Iterator[None]:
    """Turn what a store raises into an error that says what is safe."""
    try:
        yield
    except StoreError:
        raise
    except (OSError, ValueError, ImportError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise StoreError(
            f"{url}: the store cannot be used ({why}); {kept}. Way out: check its address and who "
            "may write there, then go on with --resume --retry"
        ) from error


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.name.startswith(".tmp-"):
            yield path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _marker(digests: dict[str, str]) -> bytes:
    return json.dumps({"files": digests}, indent=1).encode()
