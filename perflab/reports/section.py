"""One run as a section of a design document, in Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from perflab.analysis.treatments.noise import noise_report
from perflab.display import plain
from perflab.figures.export import write_whole
from perflab.figures.origin import commit, n_text, perflab_version, shared_note
from perflab.recordings import Run
from perflab.recordings.imported import is_imported
from perflab.reports.findings import (
    bottlenecks,
    readable_findings,
    readable_summary,
    reading_notes,
    sentences,
)
from perflab.reports.kernel import NOTE, readable_kernel
from perflab.reports.markdown import cell, to_markdown
from perflab.reports.pictures import save_all, views_of

NOT_PLACES = ("shared",)


def section_text(run: Run, figure_paths: Iterable[Path | str]) -> str:
    """Return the Markdown of ``run``: question, set-up, verdict, tables, figures, warnings.

    Parameters
    ----------
    run : Run
        The recording.
    figure_paths : iterable of path
        Links to the figures as they shall stand in the text; SVG is preferred where a figure is
        given in several formats, and other files (CSV) are left out.
    """
    record, found = run.record, readable_findings(run)
    parts = [
        f"# {record.title}\n",
        f"**Question.** {record.question}\n",
        _state(run),
        "## Verdict\n",
        _bullets(sentences(run)) or "No claim is attached to this run.\n",
        "## Findings\n",
        to_markdown(found),
        _bullets(reading_notes(found)),
        "## Measured\n",
        to_markdown(readable_summary(run)),
        "## Where the time goes\n",
        _bullets(bottlenecks(run)) or _no_bottleneck(run),
        _figures(run, figure_paths),
        _kernel(run),
        "## Set-up\n",
        _set_up(run),
        "## Noise\n",
        to_markdown(noise_report(run)),
        "## Warnings\n",
        _bullets(map(str, record.warnings)) or "There are none.\n",
        "## Trials that do not count\n",
        _not_counted(run),
    ]
    return "\n".join(part for part in parts if part)


def write_section(run: Run, directory: Path, saved: Sequence[Path] | None = None) -> Path:
    """Save the run's figures and its section as ``<directory>/<run id>.md``; return the latter.

    Figures that are ``saved`` already are linked as they are. Otherwise they go to
    ``<directory>/<run id>/``, or beside the section where the directory is the run's own already.
    Links are relative, so that the folder can be moved or committed as a whole.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if saved is None:
        own = directory if directory.name == run.run_id else directory / run.run_id
        saved = save_all(run, own)
    path = directory / f"{run.run_id}.md"
    links = [Path(os.path.relpath(figure, directory)) for figure in saved]
    write_whole(path, section_text(run, links).encode())
    return path


def _state(run: Run) -> str:
    record = run.record
    if record.state == "finished":
        return ""
    because = f" ({record.reason})" if record.reason else ""
    return f"**This run is {record.state}{because}: what follows rests on the trials it has.**\n"


def _no_bottleneck(run: Run) -> str:
    trials = run.trials()
    if run.record.steady.kind or (trials["requests"] > trials["errors"]).any():
        return "This run does not measure requests; a profile tells where the time goes.\n"
    return "No request succeeded.\n"


def _figures(run: Run, paths: Iterable[Path | str]) -> str:
    chosen: dict[str, Path] = {}
    for path in map(Path, paths):
        if path.suffix == ".svg" or (path.suffix == ".png" and path.stem not in chosen):
            chosen[path.stem] = path
    if not chosen:
        return ""
    titles = {view.name: cell(view.title[:1].upper() + view.title[1:]) for view in views_of(run)}
    images = [
        f"![{titles.get(stem, stem)}](<{path.as_posix()}>)\n" for stem, path in chosen.items()
    ]
    return "## Figures\n\n" + "\n".join(images)


def _kernel(run: Run) -> str:
    """Return the kernel's part; nothing where nothing moved, or none of it was recorded."""
    table = readable_kernel(run)
    return "" if table.empty else f"## The kernel's part\n\n{NOTE}\n\n{to_markdown(table)}"


def _set_up(run: Run) -> str:
    record = run.record
    facts = {
        "run": f"`{run.run_id}`",
        "imported at" if is_imported(record) else "measured at": record.created_at,
        "backend": record.backend,
        "network path": record.network_path,
        "placement": _placement(dict(record.placement)),
        "not separated on this machine": shared_note(record),
        "blocks, seed": f"{record.blocks_text()}, {record.seed}",
        "valid trials": n_text(run),
        "code": f"commit {commit(record)}, perflab {perflab_version()}",
    }
    listed = pd.DataFrame([(k, str(v)) for k, v in facts.items() if v], columns=["what", "value"])
    parameters = pd.DataFrame(
        [(f"`{name}`", plain(value)) for name, value in record.parameters.items()],
        columns=["parameter", "value"],
    )
    return to_markdown(listed) + "\n" + to_markdown(parameters)


def _placement(placement: dict[str, Any]) -> str:
    places = [
        f"{role}: core{'s' if _many(cores) else ''} {plain(cores)}"
        for role, cores in placement.items()
        if role not in NOT_PLACES and cores not in (None, "", [], ())
    ]
    return "; ".join(places)


def _many(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 1


def _not_counted(run: Run) -> str:
    trials = run.trials()
    if not len(trials):
        return "The run has no trial.\n"
    superseded = trials["superseded"].astype(bool)
    listed = trials[(trials["state"] != "valid") | superseded]
    if not len(listed):
        return "Every trial is valid.\n"
    return to_markdown(
        pd.DataFrame(
            {
                "trial": listed["trial_id"],
                "treatment": listed["treatment"],
                "state": listed["state"].where(~superseded, listed["state"] + ", superseded"),
                "reason": ["; ".join(map(str, reasons)) for reasons in listed["reasons"]],
            }
        )
    )


def _bullets(lines: Iterable[str]) -> str:
    return "".join(f"- {cell(str(line))}\n" for line in lines)
