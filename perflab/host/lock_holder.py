"""Who holds the host's lock, as far as the kernel vouches for it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from perflab.host.lock_file import is_own
from perflab.host.strangers import owner_of, printable, program_of, user_name

NOTE_BYTES = 1000


@dataclass(frozen=True)
class Holder:
    """Who measures on this host now; ``user`` is empty for one's own processes."""

    pid: int
    what: str
    since: str
    user: str = ""

    def __str__(self) -> str:
        of = f" of {self.user}" if self.user else ""
        since = f", since {self.since}" if self.since else ""
        return f"'{self.what}' (pid {self.pid}{of}{since})"


UNSEEN = Holder(0, "a process that cannot be seen from here", "")


def leave_note(descriptor: int, what: str) -> None:
    """Write what is measured into the locked file, for whoever looks; a full disk is no matter."""
    if not is_own(descriptor):
        return
    note = Holder(os.getpid(), what, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    with contextlib.suppress(OSError):
        # The same file once more, whatever its name leads to by now.
        writing = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(writing, 0)
            os.pwrite(writing, json.dumps(asdict(note)).encode(), 0)
        finally:
            os.close(writing)


def holder_of(descriptor: int) -> Holder | None:
    """Return who has locked an open file, without touching the lock.

    Source: proc(5), /proc/locks: a line for each lock, with process, device and inode.
    """
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    wanted = _as_listed(descriptor)
    for line in lines:
        fields = line.replace("->", "").split()
        if fields[1] == "FLOCK" and fields[-3] == wanted and "->" not in line:
            return describe(int(fields[-4]), descriptor)
    return None


def describe(pid: int, descriptor: int | None = None) -> Holder:
    """Return what may be said of the process: the kernel's word first, then its own note."""
    if pid <= 0:
        return UNSEEN
    uid = owner_of(pid)
    user = "" if uid in (None, os.getuid()) else user_name(uid or 0)
    note = _note(descriptor) if descriptor is not None else {}
    # A note is its writer's word: only the file's owner can write it, and only of itself.
    if note.get("pid") != pid or descriptor is None or os.fstat(descriptor).st_uid != uid:
        return Holder(pid, program_of(pid), "", user)
    return Holder(pid, printable(str(note.get("what"))), printable(str(note.get("since"))), user)


def _note(descriptor: int) -> dict[str, object]:
    try:
        found = json.loads(os.pread(descriptor, NOTE_BYTES, 0))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _as_listed(descriptor: int) -> str:
    """Return device and inode as /proc/locks writes them.

    The device is the filesystem's own, which stat does not tell on btrfs; the mount's line does.
    """
    facts = os.fstat(descriptor)
    major, minor = os.major(facts.st_dev), os.minor(facts.st_dev)
    with contextlib.suppress(OSError, ValueError, StopIteration):
        entries = Path(f"/proc/self/fdinfo/{descriptor}").read_text().split()
        mount = entries[entries.index("mnt_id:") + 1]
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        line = next(line for line in mounts if line.split(" ", 1)[0] == mount)
        major, minor = map(int, line.split()[2].split(":"))
    return f"{major:02x}:{minor:02x}:{facts.st_ino}"
