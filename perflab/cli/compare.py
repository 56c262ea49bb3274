"""``perflab compare``: what changed between two runs of one experiment."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from perflab.cli.completing import run_references
from perflab.cli.terminal import console as make_console
from perflab.cli.terminal import print_table

WORSE = 3
NOT_COMPARABLE = 4
STYLES = {"worse": "red", "better": "green", "unclear": "yellow"}


def command(
    run_a: Annotated[
        str,
        typer.Argument(
            help="the earlier run: id, prefix, path, latest:NAME", autocompletion=run_references
        ),
    ],
    run_b: Annotated[str, typer.Argument(help="the later run", autocompletion=run_references)],
    fail_on: Annotated[
        float,
        typer.Option(
            help="exit status 3 when something is certainly worse by this factor, like 1.1"
        ),
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Compare two runs: ratio B / A per treatment and response, with 95% intervals.

    Exit status 3 with --fail-on when a response is worse: its interval excludes 1 and its ratio
    reaches the factor. Exit status 4 when the runs are not comparable (other parameters, machine
    or backend).
    """
    from perflab import laboratory
    from perflab.analysis.treatments.two_runs import compare_runs
    from perflab.errors import ParameterError

    if fail_on and not fail_on >= 1:
        raise ParameterError("--fail-on", [f"{fail_on:g} is below 1; 1.1 means 10% worse"])
    a, b = laboratory.open_run(run_a), laboratory.open_run(run_b)
    found = compare_runs(a, b)
    worse = found.worse(fail_on) if fail_on else found.table.head(0)
    if as_json:
        words = {
            "run_a": a.run_id,
            "run_b": b.run_id,
            "comparable": not found.obstacles,
            "obstacles": list(found.obstacles),
            "notes": list(found.notes),
            "rows": json.loads(found.table.to_json(orient="records")),
            "failed": len(worse),
        }
        print(json.dumps(words, indent=1))
    else:
        _print(a.run_id, b.run_id, found.obstacles, found.notes, _table(found.table))
    if found.obstacles:
        raise typer.Exit(NOT_COMPARABLE)
    if len(worse):
        if not as_json:
            print(f"{len(worse)} responses are worse by {fail_on:g} or more")
        raise typer.Exit(WORSE)


def _print(
    a: str, b: str, obstacles: tuple[str, ...], notes: tuple[str, ...], table: Table
) -> None:
    console = make_console()
    console.print(f"A {a}\nB {b}", markup=False, highlight=False)
    if obstacles:
        console.print("not comparable:")
        for text in obstacles:
            console.print(f"  {text}", markup=False, highlight=False)
        return
    print_table(table)
    for text in notes:
        console.print(f"note: {text}", markup=False, highlight=False)


def _table(rows: object) -> Table:
    import pandas as pd

    from perflab.reports.numbers import estimate, p_value

    assert isinstance(rows, pd.DataFrame)
    table = Table("treatment", "response", "B / A [95%]", "n", "p, adjusted", "verdict")
    for row in rows.to_dict("records"):
        table.add_row(
            Text(row["treatment"]),
            row["response"],
            Text(estimate(row["ratio"], row["low"], row["high"])),
            f"{row['n_a']}, {row['n_b']}",
            p_value(row["p_adjusted"]),
            Text(row["verdict"], STYLES.get(row["verdict"], "")),
        )
    return table
