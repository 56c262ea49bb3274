"""``perflab show``: one run's set-up, trials and verdicts."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from perflab.cli.console import console as make_console

WHO = ("trial_id", "treatment", "state")
RESPONSES = ("throughput_rps", "mean_ms", "p99_ms", "flush_p50_us")
STREAM_RESPONSES = ("messages_per_s", "delivery_p50_ms", "delivery_p99_ms")


def command(
    reference: Annotated[
        str, typer.Argument(metavar="RUN", help="id, prefix, path, latest or latest:EXPERIMENT")
    ] = "latest",
) -> None:
    """Show one run: set-up, every trial, verdicts."""
    from perflab import laboratory
    from perflab.analysis.noise import noise_report
    from perflab.analysis.streams import has_streams
    from perflab.cli.runs import state_of
    from perflab.reports.verdicts import to_terminal, verdict_table

    run = laboratory.open_run(reference)
    record, console = run.record, make_console()
    console.print(f"[bold]{record.title}[/bold]\n{record.question}")
    console.print(f"{run.run_id}: {state_of(run)} {record.reason}", markup=False)
    console.print(f"backend {record.backend} ({record.network_path}), seed {record.seed}")
    for warning in [*record.warnings, *run.problems]:
        console.print(f"warning: {warning}", markup=False)
    trials = run.trials()
    responses = STREAM_RESPONSES if has_streams(run) else RESPONSES
    columns = [column for column in (*WHO, *responses) if column in trials]
    table = Table(*columns, "reasons")
    table.columns[0].no_wrap = True
    for _, row in trials.iterrows():
        cells = [_cell(row[column]) for column in columns]
        table.add_row(*cells, "; ".join(str(reason) for reason in row["reasons"]))
    console.print(table)
    noise = Table("noise", "value", "flag")
    for fact in noise_report(run).to_dict("records"):
        noise.add_row(*map(str, fact.values()))
    console.print(noise)
    console.print(to_terminal(verdict_table([run])))


def _cell(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
