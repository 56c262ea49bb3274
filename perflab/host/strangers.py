"""What other users and their processes say, made fit to print."""

from __future__ import annotations

import pwd
from pathlib import Path

LONGEST = 80


def printable(text: str) -> str:
    """Return a text without control characters, terminal escapes and line ends, and not long."""
    shown = "".join(character if character.isprintable() else "?" for character in text[:LONGEST])
    return shown + ("..." if len(text) > LONGEST else "")


def user_name(uid: int) -> str:
    """Return how to call a user, who need not have an entry in the list of users."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def owner_of(pid: int) -> int | None:
    """Return the user id a process runs under, or None when it is gone or hidden.

    Source: proc(5). Nothing that the process itself can change or block is read.
    """
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def program_of(pid: int) -> str:
    """Return the name the kernel keeps of a process's program (15 letters)."""
    try:
        return printable(Path(f"/proc/{pid}/comm").read_text(errors="replace").rstrip("\n"))
    except OSError:
        return "a program that cannot be seen"
