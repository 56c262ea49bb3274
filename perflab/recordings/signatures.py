"""By what a run's folder shows that it changed: names, lengths and times of all its files.

As git tells changed files by its index: size and times of modification and of the inode. The
latter cannot be set back, so that a file whose content was replaced is found even where somebody
restored its date.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

RECORD, TRIALS = "run.json", "trials"
# A file that changes twice within one tick of the kernel's clock (1 to 10 ms) has the same times
# after both; what is so new is believed only until the next look ("racy git").
TOO_NEW_NS = 100_000_000


def signature(folder: Path) -> str:
    """Return a digest of a run's folder that changes with any of its files; no file is opened.

    Empty where it may change again without being seen, or cannot be looked at.
    """
    try:
        stamps = _stamps(folder)
    except OSError:
        return ""
    if time.time_ns() - max(changed for *_, changed in stamps) < TOO_NEW_NS:
        return ""
    text = "\n".join(map(str, stamps))
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _stamps(folder: Path) -> list[tuple[str, int, int, int, int]]:
    """Return name, kind, size, time of modification and time of change of each file, in ns."""
    found = [_stamp(RECORD, os.lstat(folder / RECORD))]
    trials = folder / TRIALS
    try:
        found.append(_stamp(TRIALS, os.lstat(trials)))
    except FileNotFoundError:
        return found
    for trial in _entries(trials):
        found.append(_stamp(trial.name, trial.stat(follow_symlinks=False)))
        if trial.is_dir(follow_symlinks=False):
            found += [
                _stamp(f"{trial.name}/{file.name}", file.stat(follow_symlinks=False))
                for file in _entries(trial.path)
            ]
    return found


def _stamp(name: str, facts: os.stat_result) -> tuple[str, int, int, int, int]:
    return name, facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    """Return what lies in a folder, by name; what begins with a dot is not of the run."""
    with os.scandir(folder) as found:
        return sorted((each for each in found if each.name[0] != "."), key=lambda each: each.name)
