"""``perflab show``: the set-up, trials and verdicts of a run, or the requests of a load."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from perflab.cli.outputs import frame_table, make_console, print_table
from perflab.statistics.in_words import MISSING, number

if TYPE_CHECKING:
    from perflab.recordings import Run

REQUESTS = "requests.parquet"
WHO = {"trial_id": "trial", "treatment": "treatment", "state": "state"}


def command(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="id, prefix, path; latest or latest:EXPERIMENT that finished; or the folder of "
            "'perflab load --out'",
        ),
    ] = "latest",
) -> None:
    """Show one run: set-up, every trial, noise, verdicts.

    For the folder of a load, or a requests.parquet: percentiles, and where the time went.

    Example: perflab show latest:synchronous_commit

    Example: perflab show result
    """
    if Path(reference).suffix == ".parquet" or (Path(reference) / REQUESTS).is_file():
        _show_requests(Path(reference))
        return
    from perflab import api
    from perflab.analysis.noise import noise_report
    from perflab.recordings.schema import is_imported
    from perflab.reports.verdicts import to_terminal, verdict_table

    run = api.open_run(reference)
    _print_record(run)
    print_table(_trials(run))
    console = make_console()
    if is_imported(run.record):
        _print_imported(run)
        return
    for row in run.trials().to_dict("records"):
        for reason in row["reasons"]:
            console.print(Text(f"{row['trial_id']}: {reason}"))
    console.print()
    print_table(frame_table(noise_report(run).set_axis(["noise", "value", "flag"], axis=1)))
    console.print()
    print_table(to_terminal(verdict_table([run])))


def _print_record(run: Run) -> None:
    from perflab.reports.runs import state_of

    record, console = run.record, make_console()
    state = state_of(run)
    resumable = " (can be resumed)" if state in ("killed", "interrupted", "failed") else ""
    console.print(Text(record.title, "bold"))
    for line in (
        record.question,
        f"{run.run_id}: {state}{resumable} {record.reason}".rstrip(),
        f"backend {record.backend} ({record.network_path}), seed {record.seed}",
        *(f"warning: {warning}" for warning in [*record.warnings, *run.problems]),
        "",
    ):
        console.print(Text(line))


def _print_imported(run: Run) -> None:
    """Print the remarks on imported loads, and compare the treatments with the first."""
    from perflab.analysis.between_runs import NOTES, against_first
    from perflab.cli.compare import print_comparison

    console = make_console()
    trials_by_text: dict[str, list[str]] = {}
    trials = run.trials().to_dict("records")
    for row in trials:
        for remark in [*row["reasons"], *row["warnings"]]:
            trials_by_text.setdefault(str(remark), []).append(row["trial_id"])
    for text, trial_ids in trials_by_text.items():
        subject = "all trials" if len(trial_ids) == len(trials) else ", ".join(trial_ids)
        console.print(Text(f"{subject}: {text}"))
    comparison = against_first(run)
    if len(comparison):
        console.print()
        print_comparison(comparison)
        for note in NOTES:
            console.print(Text(f"note: {note}"))


def _trials(run: Run) -> Table:
    from perflab.analysis.validity import measured_responses

    trials = run.trials()
    responses = measured_responses(run)
    names = {**WHO, **{name: response.heading or name for name, response in responses.items()}}
    columns = list(names)
    table = Table(*names.values())
    table.columns[0].no_wrap = True
    for row in trials[columns].to_dict("records"):
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) >= 100 else number(value)
    # The blank lets a treatment's name wrap between its levels.
    return str(value).replace(",", ", ")


def _show_requests(path: Path) -> None:
    """Print percentiles with intervals, and where the time went.

    They are of successful requests in the measured stage. Percentiles that the sample cannot
    support are left out; those that requests without an end could move are bounds (>=).
    """
    from perflab.analysis.time_parts import summarise
    from perflab.reports.cells import cell_text, measured

    summary = summarise(path / REQUESTS if path.is_dir() else path)
    console = make_console()
    console.print(f"{summary.requests:,} measured requests, {summary.errors:,} errors")
    table = Table("time", "percentile", "ms [95%]")
    for row in summary.percentiles.to_dict("records"):
        value = measured(row["value_ms"], row["low_ms"], row["high_ms"])
        if not math.isnan(row["at_least_ms"]):
            value = f">= {number(row['at_least_ms'])}"
        shown = value if value != MISSING else "n too small"
        table.add_row(row["time"], f"p{row['share'] * 100:g}", shown)
    print_table(table)
    parts = summary.parts.pivot(index="part", columns="band", values="mean_ms")
    wide = parts.reindex(
        index=summary.parts["part"].unique(), columns=summary.parts["band"].unique()
    )
    console.print()
    print_table(frame_table(wide.rename_axis("part, mean ms").reset_index().map(cell_text)))
