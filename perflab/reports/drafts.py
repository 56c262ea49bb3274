"""What an export would write, worked out before anything is written, and how it is written."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perflab.durable import explained, whole_file
from perflab.errors import ExportRefused
from perflab.reports.marked_regions import filled


@dataclass(frozen=True)
class Draft:
    """A file as it was found (None: not there), and as it shall be."""

    path: Path
    before: bytes | None
    after: bytes


def read(path: Path) -> bytes | None:
    """Return the bytes of a file; None where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ExportRefused(
            f"{path}: cannot be read ({error.strerror}); nothing was written"
        ) from error


def copied(path: Path, content: bytes) -> Draft:
    """Return the draft of a figure or table, which nobody edits."""
    return Draft(path, read(path), content)


def marked(
    path: Path, bodies: Mapping[str, str], *, append: bool = False, overwrite: bool = False
) -> Draft:
    """Return the draft of a Markdown text with marked regions.

    Raises
    ------
    ExportRefused
        As :func:`perflab.reports.marked_regions.filled`; the file is named.
    """
    before = read(path)
    # What is no UTF-8 comes back as it was.
    text = "" if before is None else before.decode("utf-8", "surrogateescape")
    try:
        after = filled(text, bodies, append=append or before is None, overwrite=overwrite)
    except ExportRefused as error:
        raise ExportRefused(f"{path}: {error}") from None
    return Draft(path, before, after.encode("utf-8", "surrogateescape"))


def whole(path: Path, content: bytes, overwrite: bool = False) -> Draft:
    """Return the draft of a document that is written whole.

    Raises
    ------
    ExportRefused
        Something else is there, which may hold somebody's work.
    """
    before = read(path)
    if before not in (None, content) and not overwrite:
        raise ExportRefused(
            f"{path}: is not what would be written (another run, or an edit); move it away, or "
            "give --overwrite to lose it"
        )
    return Draft(path, before, content)


def write(draft: Draft) -> None:
    """Put a draft in its place, whole or not at all; a file keeps its mode.

    Raises
    ------
    ExportRefused
        The file cannot be written, or has changed since it was read.
    """
    if draft.after == draft.before:
        return
    path = draft.path
    if read(path) != draft.before:
        raise ExportRefused(f"{path}: was changed by somebody else meanwhile; export again")
    elsewhere = "give --to another folder"
    with explained(path, "the run is kept", elsewhere, ExportRefused):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            if draft.before is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(draft.after)
