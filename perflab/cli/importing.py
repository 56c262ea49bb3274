"""``perflab import``: results of other load tools become a recording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

from perflab.cli.terminal import console as make_console
from perflab.cli.terminal import print_table

if TYPE_CHECKING:
    from perflab.recordings import Run

TREATMENT = "--treatment"
# What stands in a context for :func:`command`: the files of every treatment, in their order.
GROUPS = "perflab.import.groups"


class GroupedFiles(TyperCommand):
    """A command whose ``--treatment NAME`` names the files that follow it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Note of every file to which treatment it belongs; then parse as ever."""
        valued = {
            name
            for each in self.params
            if each.param_type_name == "option" and not getattr(each, "is_flag", False)
            for name in each.opts
        }
        ctx.meta[GROUPS] = list(_named(args, valued - {TREATMENT}))
        return super().parse_args(ctx, args)


def _named(args: list[str], valued: set[str]) -> Iterator[tuple[str | None, str]]:
    """Yield treatment and file; a treatment's name itself with an empty file."""
    treatment: str | None = None
    words = iter(args)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            yield from ((treatment, each) for each in words)
        elif name == TREATMENT:
            treatment = value if equals else next(words, "")
            yield treatment, ""
        elif word in valued:
            next(words, "")
        elif not word.startswith("-") or word == "-":
            yield treatment, word


def command(
    context: typer.Context,
    files: Annotated[  # noqa: ARG001
        list[Path], typer.Argument(metavar="FILE", help="what the tool wrote, a file per load")
    ],
    tool: Annotated[
        str, typer.Option(help="k6, locust, oha, wrk or ab; without it it is guessed")
    ] = "",
    treatment: Annotated[  # noqa: ARG001
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="what the files after it were measured of; given several times it compares: "
            "--treatment a A1 A2 --treatment b B1 B2",
        ),
    ] = None,
    experiment: Annotated[
        str, typer.Option(metavar="NAME", help="what the run is called; no experiment of the lab's")
    ] = "imported",
    paired: Annotated[
        bool,
        typer.Option(
            "--paired", help="the k-th files of all treatments belong together, as in a block"
        ),
    ] = False,
    corrected: Annotated[
        bool,
        typer.Option(
            "--corrected", help="oha ran with -q and --latency-correction: its file does not say so"
        ),
    ] = False,
) -> None:
    """Take results of another load tool over as a recording: what it tells, as it tells it.

    Every file is one load and becomes a trial that is "not judged": the tool tells neither planned
    instants nor its own lag, stalls and CPU. docs/import.md says what each tool tells.

    Example: perflab import k6.json

    Example: perflab import --tool wrk --treatment a A1.txt A2.txt --treatment b B1.txt B2.txt
    """
    from perflab import laboratory

    found = laboratory.import_results(
        _groups(context.meta[GROUPS]),
        tool=tool,
        experiment=experiment,
        paired=paired,
        corrected=corrected,
    )
    _print(found, guessed=not tool)


def _groups(named: list[tuple[str | None, str]]) -> dict[str, list[Path]]:
    """Return the files by treatment.

    Raises
    ------
    ParameterError
        Of several treatments the first names no file that stands before it.
    """
    from perflab.errors import ParameterError

    names = [treatment for treatment, file in named if treatment is not None and not file]
    files = [(treatment, file) for treatment, file in named if file]
    if len(set(names)) < 2:
        (only,) = set(names) or {"imported"}
        return {only: [Path(file) for _, file in files]}
    early = [file for treatment, file in files if treatment is None]
    if early:
        said = f"{early[0]} stands before the first {TREATMENT}; a treatment's files follow it"
        raise ParameterError("perflab import", [said])
    groups: dict[str, list[Path]] = {name: [] for name in names}
    for treatment, file in files:
        groups[treatment or ""].append(Path(file))
    return groups


def _print(run: Run, guessed: bool) -> None:
    console = make_console()
    asked = run.record.parameters
    how = " (guessed; --tool says otherwise)" if guessed else ""
    note = run.record.notes["import"]
    for line in (
        f"{run.run_id}: {asked['tool']}, {asked['format']}{how}",
        f"times: {asked['times']} times, as {asked['tool']} tells them",
        *map(str, run.record.warnings),
        f"missing: {', '.join(note['missing'])}",
    ):
        console.print(Text(line))
    table = Table("treatment", "loads", "requests")
    for name, own in run.trials().groupby("treatment", sort=False):
        table.add_row(Text(str(name)), str(len(own)), f"{own['requests'].sum():,}")
    console.print()
    print_table(table)
    console.print(Text(f"\nperflab show {run.run_id} shows it"))
