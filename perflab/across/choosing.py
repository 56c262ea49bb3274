"""Which runs were asked for: by experiment, reference, backend and time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from perflab import systems
from perflab.errors import ParameterError, RunNotFound
from perflab.parameters import did_you_mean
from perflab.paths import runs_dir
from perflab.recordings import ManyRuns, Rows, Run, RunFacts, many_runs, open_run

BACKENDS = ("", "docker", "process")
Which: TypeAlias = str | Path | Run | Iterable[str | Path | Run]


def chosen_rows(rows: Rows, which: Which, backend: str, since: str) -> ManyRuns:
    """Return the facts and rows of the runs that were asked for; see :func:`perflab.trials_of`."""
    if backend not in BACKENDS:
        raise ParameterError("backend", [f"'{backend}' is not docker or process"])
    root = runs_dir()
    folders, experiments = _named(which, root)
    earliest = in_utc(since, "since") if since else datetime.min.replace(tzinfo=UTC)

    def wanted(facts: RunFacts) -> bool:
        asked = not (folders or experiments)
        return (
            (asked or facts.folder in folders or facts.experiment in experiments)
            and backend in ("", facts.backend)
            and began(facts) >= earliest
        )

    found = many_runs(root, rows, wanted)
    _check(experiments, {facts.experiment for facts in found.facts.values()})
    return found


def _named(which: Which, root: Path) -> tuple[set[str], set[str]]:
    """Return the folders of runs and the names of experiments that were asked for."""
    each = [which] if isinstance(which, (str, Path, Run)) else list(which)
    folders, experiments = set(), set()
    for one in each:
        if isinstance(one, Run):
            folders.add(_folder(one, root))
        elif str(one) in systems.names():
            experiments.add(str(one))
        elif str(one):
            try:
                folders.add(_folder(open_run(one, root), root))
            except RunNotFound:
                # Its system may not be installed here.
                experiments.add(str(one))
    return folders, experiments


def _check(asked: set[str], measured: set[str]) -> None:
    """Refuse names that are no experiment's, neither an installed one's nor a run's."""
    known = sorted({*systems.names(), *measured})
    problems = [
        f"no experiment or run '{name}'{did_you_mean(name, known)}"
        for name in sorted(asked - set(known))
    ]
    if problems:
        raise ParameterError("which runs", problems)


def _folder(run: Run, root: Path) -> str:
    path = run.path.resolve()
    if path.parent != root.resolve():
        raise ParameterError(
            "which runs", [f"{path} is not in {root}; point PERFLAB_RUNS at {path.parent}"]
        )
    return path.name


def in_utc(text: str, what: str) -> datetime:
    """Return an instant, in UTC where it names no other zone.

    Raises
    ------
    ParameterError
        It is none; the message names ``what``.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ParameterError(
            what, [f"'{text}' is no time; write 2026-11-21 or 2026-11-21T10:30"]
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)


def began(facts: RunFacts) -> datetime:
    """Return when a run began; of one whose record does not say, long ago."""
    try:
        return in_utc(facts.created_at, "created_at")
    except ParameterError:
        return datetime.min.replace(tzinfo=UTC)
