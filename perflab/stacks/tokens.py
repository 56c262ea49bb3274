"""The secret by which processes that the lab started are told from those that claim to be.

The environment of a process is what its starter wrote: also that of a program which another user
started and which then became ours (sudo). Only we can read the secret.
"""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

from perflab.host.own_folders import check_own, own_folder
from perflab.paths import state_dir

LENGTH = 32


def token() -> str:
    """Return the state folder's secret, made when there is none.

    Raises
    ------
    UnsafePlace
        The state folder is not one's own.
    """
    path = own_folder(state_dir()) / "token"
    kept = _read(path)
    if len(kept) != LENGTH:
        # Whole under its name or not there at all; of two makers at once the first one's stays.
        making = path.with_name(f"token.making-{os.getpid()}-{secrets.token_hex(4)}")
        making.touch(mode=0o600)
        making.write_text(secrets.token_hex(LENGTH // 2))
        try:
            os.link(making, path)
        except FileExistsError:
            if len(_read(path)) != LENGTH:
                making.replace(path)
        making.unlink(missing_ok=True)
        kept = _read(path)
    return kept


def is_token(shown: str) -> bool:
    """Tell whether a process shows the secret; nothing is made.

    Raises
    ------
    UnsafePlace
        The state folder is not one's own.
    """
    try:
        check_own(state_dir())
    except FileNotFoundError:
        return False
    kept = _read(state_dir() / "token")
    return len(kept) == LENGTH and hmac.compare_digest(kept.encode(), shown.encode())


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""
