"""``perflab runs`` lists recorded runs; ``perflab import`` makes one of other tools' results."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from perflab.cli.outputs import make_console, named_here, print_table

if TYPE_CHECKING:
    from perflab.recordings import Run

# So many treatments are named.
MOST_LABELS = 3


def command(
    experiment: Annotated[str, typer.Option(help="only runs of this experiment")] = "",
    limit: Annotated[int, typer.Option(min=0, help="only this many, the newest; 0: all")] = 0,
    reference: Annotated[
        bool, typer.Option("--reference", help="only runs that ship with the lab")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="print JSON, with parameters and paths")
    ] = False,
) -> None:
    """List recorded runs, oldest first: your own, or those that ship with the lab.

    Example: perflab runs --json

    Runs elsewhere: PERFLAB_RUNS=/mnt/results/runs perflab runs
    """
    from perflab.paths import runs_dir
    from perflab.recordings import list_runs, reference_runs

    problems: list[str] = []
    all_runs = reference_runs() if reference else list_runs(runs_dir(), problems)
    _check_experiment(experiment, all_runs)
    # A limit of 0 gives all: [-0:] is the whole list.
    runs = [run for run in all_runs if experiment in ("", run.record.experiment)][-limit:]
    if as_json:
        print(json.dumps([_as_words(run) for run in runs], indent=1))
    elif not all_runs:
        print(
            f"there are no runs in {named_here(runs_dir())} yet; 'perflab run EXPERIMENT' or "
            "'perflab lab' makes one, and 'perflab runs --reference' lists those of the lab"
        )
    elif not runs:
        print(f"none of the {len(all_runs)} runs is a run of {experiment}")
    else:
        print_table(_table(runs))
        if not reference:
            print(f"in {named_here(runs_dir())}; 'perflab show latest' tells what came out")
    for problem in problems:
        print(f"perflab: left out: {problem}", file=sys.stderr)


def _check_experiment(name: str, runs: list[Run]) -> None:
    from perflab.errors import ParameterError
    from perflab.parameters import unknown
    from perflab.systems import names

    known = sorted({*names(), *(run.record.experiment for run in runs)})
    if problems := unknown("experiment", [name] if name else [], known):
        raise ParameterError("--experiment", problems)


def _table(runs: list[Run]) -> Table:
    from perflab.recordings import complete_blocks
    from perflab.reports.runs import state_of

    table = Table("run", "compares", "state", "backend", "blocks", "valid")
    table.columns[0].no_wrap = True
    for run in runs:
        counts = _counts(run)
        table.add_row(
            run.run_id,
            _compared(run),
            state_of(run),
            run.record.backend,
            f"{complete_blocks(run)}/{run.record.blocks}",
            f"{counts['valid']}/{sum(counts.values())}",
        )
    return table


def _compared(run: Run) -> Text:
    """Return the treatments of a run, or how many; of a duel also what was asked, and answered."""
    labels = [treatment.label for treatment in run.record.treatments]
    compared = " | ".join(labels) if len(labels) <= MOST_LABELS else f"{len(labels)} treatments"
    asked = "; ".join(filter(None, [compared, _asked(run.record.parameters)]))
    return Text("\n".join(filter(None, [asked, _answer(run)])))


def _answer(run: Run) -> str:
    """Return the first line of a duel's answer, as its section has it; nothing of other runs."""
    from perflab.paths import figures_dir
    from perflab.reports.duels import are_variants
    from perflab.reports.section import saved_answer

    return saved_answer(run, figures_dir() / run.run_id) if are_variants(run) else ""


def _asked(parameters: Mapping[str, Any]) -> str:
    """Return the path of a duel's requests, or the names of several."""
    requests = parameters.get("requests")
    if isinstance(requests, list) and requests:
        return ", ".join(request["name"] for request in requests)
    path = str(parameters.get("path", ""))
    return path if path != "/" else ""


def _counts(run: Run) -> dict[str, int]:
    """Return the number of trials by state, without superseded ones."""
    from perflab.recordings.tables import JUDGED_STATES

    states = run.current_trials()["state"].value_counts()
    # Imported trials have another state: "not judged".
    return {**dict.fromkeys(JUDGED_STATES, 0), **{str(name): int(n) for name, n in states.items()}}


def _as_words(run: Run) -> dict[str, Any]:
    from perflab.recordings import complete_blocks
    from perflab.reports.runs import state_of

    record = run.record
    return {
        "run": run.run_id,
        "experiment": record.experiment,
        "backend": record.backend,
        "state": state_of(run),
        "reason": record.reason,
        "created_at": record.created_at,
        "finished_at": record.finished_at,
        "blocks": record.blocks,
        "complete_blocks": complete_blocks(run),
        "answer": _answer(run),
        "trials": _counts(run),
        "parameters": record.parameters,
        "commit": record.code.get("commit", ""),
        "path": str(run.path),
        "warnings": [warning.model_dump() for warning in record.warnings],
        "problems": run.problems,
    }


def import_results(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[TREATMENT=]FILE...", help="results of the tool, one file or folder per load"
        ),
    ],
    tool: Annotated[
        str, typer.Option(help="read the files as this tool's: k6, locust, oha, wrk, ab, perflab")
    ] = "",
) -> None:
    """Make a recording from the results of another load tool, or of 'perflab load --out'.

    Each load becomes one trial. Trials are "not judged", because the files lack
    planned instants and the tool's own lag, stalls and CPU, or the order of the loads.
    docs/how-to/import.md lists what is read.

    Example: perflab import k6.json

    Example: perflab import a=A1.txt a=A2.txt b=B1.txt b=B2.txt

    Example: perflab import old=load1 old=load2 new=load3 new=load4
    """
    from perflab import api

    _print_imported(api.import_results(_groups(files), tool))


def _groups(words: list[str]) -> dict[str, list[Path]]:
    """Return the files by treatment; files without one belong to ``imported``."""
    from perflab.recordings.imports.results import OWN_FILE

    groups: dict[str, list[Path]] = {}
    for word in words:
        name, equals, file = word.partition("=")
        if not equals or Path(word).exists():
            name, file = "imported", word
        path = Path(file)
        groups.setdefault(name, []).append(path / OWN_FILE if path.is_dir() else path)
    return groups


def _print_imported(run: Run) -> None:
    from perflab.recordings.imports.results import doubts

    console = make_console()
    parameters = run.record.parameters
    note = run.record.notes["import"]
    for line in (
        f"{run.run_id}: {parameters['tool']}, {parameters['format']}",
        *map(str, run.record.warnings),
        f"missing: {', '.join(note['missing'])}",
    ):
        console.print(Text(line))
    table = Table("treatment", "loads", "requests", "of them")
    for name, trials in run.trials().groupby("treatment", sort=False):
        requests = f"{trials['requests'].sum():,}"
        table.add_row(Text(str(name)), str(len(trials)), requests, doubts(trials))
    console.print()
    print_table(table)
    console.print(Text(f"\nTo see it: perflab show {run.run_id}"))
