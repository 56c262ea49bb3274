"""What the lab itself has left on this machine, and who measures."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.doctor.finding import Finding
from perflab.host.lock import holder
from perflab.host.lock import problem as lock_problem
from perflab.paths import state_dir
from perflab.stacks import leftovers
from perflab.stacks.surveying import Survey, survey

SHOWN = 3


def looked() -> list[Finding]:
    """Look at lock, services and folders of this user's."""
    busy = holder()
    folders = leftovers.orphaned_folders() if state_dir().is_dir() else []
    return [
        lock(str(busy) if busy else "", lock_problem()),
        services(survey(), measuring=busy is not None),
        stacks([str(each) for each in folders]),
    ]


def lock(busy: str, problem: str) -> Finding:
    """Judge the host's lock."""
    if problem:
        return Finding("host lock", "wrong", problem, "remove it, or set PERFLAB_LOCK")
    if busy:
        return Finding("host lock", "beware", f"measuring now: {busy}", "wait for its end (--wait)")
    return Finding("host lock", "ok", "free")


def services(seen: Survey, measuring: bool) -> Finding:
    """Judge services and containers that are there though nobody measures."""
    names = [f"{item.service} ({item.stack}, {item.backend})" for item in seen.inside()]
    if seen.warnings:
        return Finding("services", "beware", several(seen.warnings, "; "), "see 'perflab stack ps'")
    if not names or measuring:
        return Finding("services", "ok", "none left" if not names else "of the measurement")
    return Finding("services", "beware", f"up: {several(names)}", "perflab stack down")


def stacks(folders: Sequence[str]) -> Finding:
    """Judge folders of stacks of which nothing runs."""
    if folders:
        return Finding("folders of stacks", "beware", several(folders), "perflab stack down")
    return Finding("folders of stacks", "ok", "none left")


def several(words: Sequence[str], between: str = ", ") -> str:
    """Return the first ones, and how many more there are."""
    more = f"{between}and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return between.join(words[:SHOWN]) + more
