"""``perflab runs``: the recorded runs."""

from __future__ import annotations

from rich.table import Table

from perflab.cli.console import console as make_console


def state_of(run: object) -> str:
    """Return a run's state; one that says running while nobody measures was killed."""
    from perflab.host.lock import holder
    from perflab.recordings import Run

    assert isinstance(run, Run)
    if run.record.state == "running" and holder() is None:
        return "killed (can be resumed)"
    return run.record.state


def command() -> None:
    """List recorded runs, oldest first."""
    from perflab import laboratory

    found = laboratory.runs()
    if not found:
        print("no runs yet; 'perflab run EXPERIMENT' or 'make lab' makes one")
        return
    table = Table("run", "state", "backend", "blocks", "trials", "valid")
    for run in found:
        trials = run.trials()
        valid = len(run.valid_trials())
        table.add_row(
            run.run_id,
            state_of(run),
            run.record.backend,
            str(run.record.blocks),
            str(len(trials)),
            str(valid),
        )
    make_console().print(table)
