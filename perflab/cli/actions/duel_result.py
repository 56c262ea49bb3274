"""Prints what a duel found, and writes its summary, section and figures."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.gates.thresholds import Threshold, judged
from perflab.analysis.noise import doubt
from perflab.cli.outputs import frame_table, make_console, named_here, print_table
from perflab.cli.repeating import repeatable
from perflab.errors import ExportRefused, ParameterError, cause
from perflab.host.files import explained, replace_file
from perflab.paths import figures_dir
from perflab.recordings import Run
from perflab.reports.duel_answer import differs
from perflab.reports.duel_notes import notes
from perflab.reports.duel_pairs import Pair, pairs_of
from perflab.reports.duel_summary import as_data, as_markdown
from perflab.reports.duel_table import result_table
from perflab.reports.duels import above_the_answer, answer_lines, beside_the_answer
from perflab.reports.methods import command as command_of
from perflab.reports.section import write_report


@dataclass(frozen=True)
class DuelResult:
    """A duel that was measured, what was found, and the gates of each pair of variants."""

    run: Run
    findings: list[Finding]
    pairs: list[Pair]

    def write_report(self) -> Path:
        """Write the section and the figures, and return their folder."""
        folder = figures_dir() / self.run.run_id
        return write_report(self.run, self.findings, folder)[0].parent


def of(run: Run, thresholds: Sequence[Threshold]) -> DuelResult:
    """Return what was found, judged by the thresholds."""
    findings = evaluate(run)
    return DuelResult(run, findings, pairs_of(findings, thresholds, judged(thresholds, findings)))


def _summary_of_job() -> Path | None:
    """Return the file of the job's summary where GitHub runs one."""
    name = os.environ.get("GITHUB_STEP_SUMMARY", "")
    return Path(name) if name else None


def check_summary(file: Path | None) -> None:
    """Make the folders of the summaries; ParameterError where one could not be written."""
    of_job = _summary_of_job()
    problems = {
        # The one takes the place of what is there, the other is added to it.
        "--summary": file and _unwritable(file, file.parent),
        "GITHUB_STEP_SUMMARY": of_job and _unwritable(of_job, of_job),
    }
    if told := [f"{name}: {problem}" for name, problem in problems.items() if problem]:
        raise ParameterError("perflab duel", told)


def _unwritable(path: Path, written: Path) -> str:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"the folder of {path} cannot be made ({cause(error)})"
    if path.is_dir():
        return f"{path} is a folder; name a file"
    if not os.access(written if written.exists() else path.parent, os.W_OK):
        return f"{path} cannot be written; name a file in a folder of your own"
    return ""


def summarise(result: DuelResult, file: Path | None) -> None:
    """Write the summary to a file, and add it to that of the job where GitHub runs one."""
    of_job = _summary_of_job()
    text = as_markdown(result.run, result.pairs) if file or of_job else ""
    elsewhere = f"take the answer from 'perflab show {result.run.run_id}'"
    if file:
        with explained(file, "the run is kept", elsewhere, ExportRefused):
            replace_file(file, text.encode())
    if of_job:
        with (
            explained(of_job, "the run is kept", elsewhere, ExportRefused),
            of_job.open("a", encoding="utf-8") as job,
        ):
            job.write(text)


def print_json(result: DuelResult) -> None:
    """Print the answer as JSON, and write the report."""
    print(json.dumps(as_data(result.run, result.pairs), indent=1, allow_nan=False))
    result.write_report()


def print_result(result: DuelResult, values: Mapping[str, Any]) -> None:
    """Print the answer, where its report is, and how to repeat a duel of these parameters."""
    run, pairs = result.run, result.pairs
    _print_answer(run, pairs)
    console = make_console()
    folder = named_here(result.write_report())
    console.print(Text(f"\nfigures and section: {folder}/"), soft_wrap=True)
    if any(map(differs, pairs)) and _can_be_explained(run.record.parameters):
        why = f"perflab duel --resume {run.run_id} --why"
        console.print(Text(f"what makes the difference: {why}"), soft_wrap=True)
    # A resumed run has its own parameters, and not those of this command line.
    typed = shlex.join(["perflab", *repeatable(sys.argv[1:], values)])
    again = command_of(run.record) if values.get("resume") else typed
    console.print(Text(f"repeat: {again}"), soft_wrap=True)
    sys.stdout.flush()


def _can_be_explained(parameters: Mapping[str, Any]) -> bool:
    """Return whether a duel was measured without its why, on services that the lab starts."""
    kinds = [str(variant).partition("=")[2] for variant in parameters.get("variants", ())]
    return not (parameters.get("why") or any(kind.startswith("url:") for kind in kinds))


def _print_answer(run: Run, pairs: Sequence[Pair]) -> None:
    """Print whether answers differ, the result, a doubt, the table behind it, and its limits."""
    console = make_console()
    for sentence in above_the_answer(run):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    for pair in pairs:
        for line in answer_lines(run, pair, len(pairs) == 1):
            console.print(Text(line, "bold"), soft_wrap=True)
    for sentence in beside_the_answer(run, pairs):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    if why := doubt(run):
        console.print(f"DOUBTFUL: {why}", markup=False, highlight=False)
    if any(finding.effect for pair in pairs for finding in pair.findings.values()):
        console.print()
        print_table(frame_table(result_table(run, pairs)))
    console.print()
    for line in notes(run, pairs):
        console.print(line, markup=False, highlight=False)
