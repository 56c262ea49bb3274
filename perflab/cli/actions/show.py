"""Shows one run, or the summary of a load that was kept, on a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from perflab import api
from perflab.analysis.between_runs import NOTES, against_first
from perflab.analysis.noise import noise_flags, noise_report
from perflab.analysis.time_parts import parts_of_load
from perflab.analysis.typical_values import measured_responses
from perflab.analysis.validity import validity_table
from perflab.cli.outputs import (
    frame_table,
    make_console,
    print_note,
    print_parts,
    print_shown,
    print_table,
)
from perflab.errors import RecordingError
from perflab.load.records.record import FILE, read
from perflab.load.summary_table import table as load_table
from perflab.recordings import Run
from perflab.recordings.display import Shown
from perflab.recordings.schema import is_imported
from perflab.reports.cells import cell_text
from perflab.reports.duels import above_the_answer, are_variants, variant_sentences
from perflab.reports.methods import first_said
from perflab.reports.rules import findings_of
from perflab.reports.runs import state_of
from perflab.reports.section import page_table, told_states
from perflab.reports.verdicts import (
    COLORS,
    comparison_text,
    shown_answers,
    shown_findings,
    shown_summary,
)
from perflab.statistics.in_words import number

WHO = {"trial_id": "trial", "treatment": "treatment", "state": "state"}


def show_run(reference: str, *, full: bool) -> None:
    """Print a run: its answers, or every trial, number and verdict."""
    run = api.open_run(reference)
    _print_question(run)
    if is_imported(run.record):
        print_table(_trials(run))
        _print_imported(run)
    elif full:
        _print_all(run)
    else:
        _print_answers(run)
    _print_circumstances(run)
    if not full:
        print(f"\nEvery trial, number and verdict:\nperflab show {run.run_id} --full")


def show_load(folder: Path) -> None:
    """Print the summary of a load, and where the time went."""
    try:
        print(load_table(read(folder)))
    except (OSError, ValueError) as error:
        raise RecordingError(f"{folder / FILE}: cannot be read: {error}") from None
    parts = parts_of_load(folder / "requests.parquet")
    if len(parts):
        print()
        print_table(frame_table(parts.rename_axis("part, mean ms").reset_index().map(cell_text)))


def _print_answers(run: Run) -> None:
    """Print the answers, what each treatment did, why trials do not count, and the noise."""
    findings = findings_of(run)
    if are_variants(run):
        for sentence in variant_sentences(run, findings):
            make_console().print(Text(sentence))
        _print_first_said(run)
    else:
        print_shown(shown_answers(run, findings, "the reasons stand below"))
    print()
    print_parts(page_table(run))
    for row in validity_table(run).to_dict("records"):
        if row["reason"]:
            print_note(f"{row['label']}: {row['reason']}")
    if flags := noise_flags(run):
        print_note(f"noise: {', '.join(flags)}")


def _print_all(run: Run) -> None:
    """Print verdicts, every trial, with the reasons of those that do not count, and the noise."""
    console = make_console()
    for line in above_the_answer(run):
        print_note(line)
    _print_first_said(run)
    print_shown(replace(shown_findings(run, findings_of(run)), heading="Verdicts"))
    console.print()
    print_shown(shown_summary(run))
    console.print()
    print_table(_trials(run))
    for row in run.current_trials().to_dict("records"):
        for reason in row["reasons"]:
            console.print(Text(f"{row['trial_id']}: {reason}"))
    console.print()
    print_table(frame_table(noise_report(run).set_axis(["noise", "value", "flag"], axis=1)))


def _print_first_said(run: Run) -> None:
    """Print what a reader must know first: trials do not count, or the run is doubtful."""
    for line in first_said(run, "the reasons stand below"):
        print_note(line)


def _print_question(run: Run) -> None:
    record, console = run.record, make_console()
    state = state_of(run)
    resumable = " (can be resumed)" if state in ("killed", "interrupted", "failed") else ""
    console.print(Text(record.title, "bold"))
    console.print(Text(record.question))
    console.print(Text(f"{run.run_id}: {state}{resumable} {record.reason}".rstrip()))
    console.print()


def _print_circumstances(run: Run) -> None:
    record = run.record
    for warning in [*record.warnings, *run.problems]:
        print_note(f"warning: {warning}")
    print_note(f"backend {record.backend} ({record.network_path}), seed {record.seed}")


def _print_imported(run: Run) -> None:
    """Print the remarks on imported loads, and compare the treatments with the first."""
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
        rows = comparison_text(comparison)
        print_shown(Shown(comparison, rows, marks=COLORS, notes=list(NOTES)))


def _trials(run: Run) -> Table:
    trials = run.trials().assign(state=told_states)
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
