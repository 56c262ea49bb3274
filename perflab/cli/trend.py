"""``perflab trend``: an effect over commits and days, and where its level changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from perflab.cli.completing import experiment_names
from perflab.cli.terminal import console as make_console
from perflab.cli.terminal import print_table

if TYPE_CHECKING:
    from perflab.reports.trends import Trend

CHANGED = 3
TOO_FEW_RUNS = 5


def command(
    experiment: Annotated[str, typer.Argument(autocompletion=experiment_names)],
    contrast: Annotated[str, typer.Option(help="only this contrast, by its name")] = "",
    response: Annotated[str, typer.Option(help="only contrasts of this response")] = "",
    backend: Annotated[Literal["", "docker", "process"], typer.Option(help="only runs on it")] = "",
    since: Annotated[
        str, typer.Option(metavar="TIME", help="only runs from then on: 2026-11-21 (UTC)")
    ] = "",
    figure: Annotated[
        Path | None, typer.Option(help="save the figure there: .svg, .png or .pdf")
    ] = None,
    csv: Annotated[
        str, typer.Option(metavar="FILE", help="write a row per run and contrast; -: print it")
    ] = "",
    fail_on: Annotated[
        float,
        typer.Option(help="exit status 3 where a level changed by this factor, like 1.1, or more"),
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Show an experiment's effects over its finished runs, and where their level changed.

    The unit is the run. Runs on unlike machines or backends, or with other parameters, are series
    of their own. A change is tested from 12 runs of a series on (docs/trend.md).

    Exit status 3 with --fail-on when a level changed by the factor or more, either way; 5 with
    --fail-on when no change was found but a series has too few runs to test.

    Example: perflab trend synchronous_commit --since 2026-11-21 --fail-on 1.1
    """
    from perflab import laboratory
    from perflab.errors import ParameterError

    if fail_on and not fail_on > 1:
        raise ParameterError("--fail-on", [f"{fail_on:g} is not above 1; 1.1 means by 10%"])
    if as_json and csv == "-":
        raise ParameterError("--csv", ["--json and --csv - would both be printed; name a file"])
    found = laboratory.trend(
        experiment, contrast=contrast, response=response, backend=backend, since=since
    )
    if csv and csv != "-":
        _write(Path(csv), found.table.to_csv(index=False))
    if csv == "-":
        print(found.table.to_csv(index=False), end="")
    elif as_json:
        print(json.dumps(_words(found), indent=1))
    else:
        _print(found)
    if as_json or csv == "-":
        for text in found.below():
            print(f"perflab: {text}", file=sys.stderr)
    if figure is not None:
        saved = found.save(figure)
        print(saved, file=sys.stderr if as_json or csv == "-" else sys.stdout)
    if fail_on:
        _judge(found, fail_on)


def _write(path: Path, text: str) -> None:
    from perflab.figures.export import write_whole

    write_whole(path, text.encode())


def _judge(found: Trend, factor: float) -> None:
    changed = [each for each in found.series if each.changed(factor)]
    if changed:
        for each in changed:
            print(f"changed by {factor:g} or more: {found.heading(each)}", file=sys.stderr)
        raise typer.Exit(CHANGED)
    few = [each for each in found.series if not each.enough]
    if few or not found.series:
        for each in few:
            print(f"{found.heading(each)}: {each.said()}", file=sys.stderr)
        print(
            f"--fail-on {factor:g} did not judge every series. Three runs a side are enough where "
            "you name the split: perflab compare A1,A2,A3 B1,B2,B3",
            file=sys.stderr,
        )
        raise typer.Exit(TOO_FEW_RUNS)


def _words(found: Trend) -> dict[str, Any]:
    return {
        "experiment": found.experiment,
        "series": [
            {
                "contrast": each.contrast,
                "claim": each.claim,
                "response": each.response,
                "scale": each.scale,
                "unit": each.unit,
                "backend": each.backend,
                "machine_id": each.machine_id,
                "apart": found.apart.get(each.question_id, ""),
                "enough_runs": each.enough,
                "without_a_number": each.without,
                "said": each.said(),
                "runs": json.loads(each.table.to_json(orient="records", date_format="iso")),
            }
            for each in found.series
        ],
        "changes": json.loads(found.changes.to_json(orient="records")),
        "notes": list(found.notes),
        "problems": list(found.problems),
    }


def _print(found: Trend) -> None:
    from perflab.reports.trends import to_terminal

    console = make_console()
    for each in found.series:
        print_table(to_terminal(found, each))
        print()
    for text in (*found.said(), *found.below()):
        console.print(Text(text))
