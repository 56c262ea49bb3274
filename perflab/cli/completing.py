"""What the shell can complete: names of experiments, and references to runs."""

from __future__ import annotations


def experiment_names(incomplete: str) -> list[str]:
    """Return the experiments whose names begin so."""
    from perflab.systems import names

    return [name for name in names() if name.startswith(incomplete)]


def stack_names(incomplete: str) -> list[str]:
    """Return the stacks that can be started whose names begin so."""
    from perflab.systems import ready_stacks

    return [name for name in ready_stacks() if name.startswith(incomplete)]


def run_references(incomplete: str) -> list[str]:
    """Return ids of runs that begin so, and ``latest``; no record is read."""
    from perflab.paths import runs_dir

    ids = sorted((path.parent.name for path in runs_dir().glob("[!.]*/run.json")), reverse=True)
    return [reference for reference in ("latest", *ids) if reference.startswith(incomplete)]


def several_run_references(incomplete: str) -> list[str]:
    """Return what a list of references joined by commas may become; none is offered twice."""
    given, comma, last = incomplete.rpartition(",")
    known = given.split(",") if comma else []
    return [f"{given}{comma}{each}" for each in run_references(last) if each not in known]
