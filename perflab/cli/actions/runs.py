"""Lists recorded runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from perflab.cli.outputs import named_here, print_table
from perflab.errors import ParameterError
from perflab.parameters import unknown
from perflab.paths import figures_dir, runs_dir
from perflab.recordings import Run, complete_blocks, list_runs, reference_runs
from perflab.recordings.tables import JUDGED_STATES
from perflab.reports.duels import are_variants
from perflab.reports.runs import state_of
from perflab.reports.section import saved_answer
from perflab.systems import names

# So many treatments are named.
MOST_LABELS = 3


def print_runs(experiment: str, limit: int, *, reference: bool, as_json: bool) -> None:
    """Print the runs of an experiment (empty: all), the newest of them (0: all)."""
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
    known = sorted({*names(), *(run.record.experiment for run in runs)})
    if problems := unknown("experiment", [name] if name else [], known):
        raise ParameterError("--experiment", problems)


def _table(runs: list[Run]) -> Table:
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
    labels = [*run.record.labels.values()]
    compared = " | ".join(labels) if len(labels) <= MOST_LABELS else f"{len(labels)} treatments"
    asked = "; ".join(filter(None, [compared, _asked(run.record.parameters)]))
    return Text("\n".join(filter(None, [asked, _answer(run)])))


def _answer(run: Run) -> str:
    """Return the first line of a duel's answer, as its section has it; nothing of other runs."""
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
    states = run.current_trials()["state"].value_counts()
    # Imported trials have another state: "not judged".
    return {**dict.fromkeys(JUDGED_STATES, 0), **{str(name): int(n) for name, n in states.items()}}


def _as_words(run: Run) -> dict[str, Any]:
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
