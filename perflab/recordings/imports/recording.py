"""Writes imported loads as a run, which appears whole or not at all."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.errors import ImportRefused, ParameterError
from perflab.host.files import explained, sync_folder
from perflab.recordings import (
    Remark,
    Run,
    RunRecord,
    RunWriter,
    TreatmentRecord,
    new_run_id,
    trial_id,
)
from perflab.recordings.imports import ab, k6, locust, oha, wrk
from perflab.recordings.imports.reading import (
    ToolResult,
    bytes_of,
    declared_responses,
    not_judged,
    refused,
    remarks_of,
    result_columns,
    text_of,
)
from perflab.recordings.schema import BACKEND
from perflab.recordings.tables import NOT_JUDGED

_SENT = (
    "Coordinated omission is not corrected: times do not hold the wait of a request before it is "
    "sent."
)
_K6 = (
    "Coordinated omission is not corrected: times count from the sending, even if an arrival rate "
    "plans the iterations; k6 reports those that it could not start as dropped_iterations."
)
_OHA = (
    "oha counts from its plan only with -q and --latency-correction, and its JSON does not say "
    "whether it did: a service time here may count from the planned instant."
)
_WRK = (
    "wrk corrects by a guess: for a time that is much longer than its mean interval between "
    "requests it adds made-up shorter ones. Its times count from the sending all the same."
)


@dataclass(frozen=True)
class Format:
    """An output format of a tool; ``omission`` is the warning about coordinated omission."""

    tool: str
    name: str
    fits: Callable[[str], bool]
    read: Callable[[Path, str], ToolResult]
    omission: str = _SENT


FORMATS = (
    Format("k6", "summary", k6.fits, k6.read, _K6),
    Format("locust", "CSV", locust.fits, locust.read),
    Format("oha", "JSON", oha.fits, oha.read, _OHA),
    Format("wrk", "text", wrk.fits, wrk.read, _WRK),
    Format("ab", "text", ab.fits, ab.read),
)


def format_of(path: Path, text: str) -> Format:
    """Return the format of a file by its beginning; ImportRefused where none fits."""
    for form in FORMATS:
        if form.fits(text):
            return form
    tools = ", ".join(form.tool for form in FORMATS)
    problem = f"it is no output of {tools} that perflab imports"
    raise refused(path, 1, f"{problem}; docs/import.md lists the outputs")


EXPERIMENT = "imported"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,=+:-]{0,99}", re.ASCII)
MISSING = (
    "planned instants", "generator lag", "the client's CPU and stalls",
    "CPU and memory of services", "what the server counted", "facts of the machine",
)  # fmt: skip


@dataclass(frozen=True)
class ImportedLoad:
    """A load, and the file that reports it."""

    path: Path
    size_bytes: int
    sha256: str
    form: Format
    result: ToolResult


def import_files(groups: Mapping[str, Sequence[Path]], root: Path) -> Run:
    """Write the loads of files as a run under ``root``, and return it.

    ``groups`` are the files of every treatment. The k-th load of every treatment stands in the k-th
    block, although these loads are no pairs.

    ParameterError where a name or a number of files is not allowed; nothing was written.
    ImportRefused where a file is damaged, or of another tool; nothing was written. RecordingError
    where the run cannot be written.
    """
    _check_names(groups)
    loads = _loads(groups)
    record = _record(loads)
    with _whole_run(root, record) as writer:
        for position, (name, group) in enumerate(loads.items()):
            for block, load in enumerate(group):
                writer.commit_trial(_row(load, name, block, position), None, None)
    return Run(root / record.run_id)


def _check_names(groups: Mapping[str, Sequence[Path]]) -> None:
    """Raise ParameterError where a treatment has a wrong name or no file."""
    problems = [
        f"treatment '{name:.100}': a name has letters, digits and _ . , = + : -, at most 100"
        for name in groups
        if not NAME.fullmatch(name)
    ]
    problems += [f"treatment '{name}' has no file" for name, files in groups.items() if not files]
    if not groups:
        problems.append("no file was named; write perflab import FILE...")
    if problems:
        raise ParameterError("perflab import", problems)


def _loads(groups: Mapping[str, Sequence[Path]]) -> dict[str, list[ImportedLoad]]:
    """Return the loads by treatment; ImportRefused where files are equal, or of several tools."""
    loads = {name: [_load(path) for path in paths] for name, paths in groups.items()}
    first, *others = [load for group in loads.values() for load in group]
    paths_by_digest = {first.sha256: first.path}
    for load in others:
        if load.sha256 in paths_by_digest:
            problem = f"it is the same as {paths_by_digest[load.sha256]}; every load counts once"
            raise ImportRefused(f"{load.path}: {problem}")
        paths_by_digest[load.sha256] = load.path
        if load.form is not first.form:
            raise ImportRefused(
                f"{load.path}: it is of {load.form.tool}, and {first.path} is of "
                f"{first.form.tool}; a run holds loads of one tool: import each tool's files by "
                "themselves"
            )
    return loads


def _load(path: Path) -> ImportedLoad:
    content = bytes_of(path)
    text = text_of(path, content)
    form = format_of(path, text)
    digest = hashlib.sha256(content).hexdigest()
    return ImportedLoad(path, len(content), digest, form, form.read(path, text))


def _row(load: ImportedLoad, name: str, block: int, position: int) -> dict[str, Any]:
    tool = load.form.tool
    return {
        "trial_id": trial_id(block, position, 0),
        "block": block,
        "position": position,
        "attempt": 0,
        "treatment": name,
        "factor_treatment": name,
        "state": NOT_JUDGED,
        "started_at": "",
        "reasons": [not_judged(tool)],
        "warnings": remarks_of(load.result, tool),
        "told_by": load.path.name,
        **result_columns(load.result),
    }


def _record(loads: Mapping[str, Sequence[ImportedLoad]]) -> RunRecord:
    """Return the record of an imported run: a treatment for each name, a trial for each load.

    All loads are of one tool and one format. The order of the blocks is that of the files: nobody
    knows in which order the loads were made.
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    blocks = max(map(len, loads.values()))
    form = next(load.form for group in loads.values() for load in group)
    return RunRecord(
        run_id=new_run_id(EXPERIMENT),
        experiment=EXPERIMENT,
        title=f"Imported: {form.tool} ({form.name})",
        question=f"What did {form.tool} report of {', '.join(loads)}?",
        responses=declared_responses(form.tool),
        state="finished",
        created_at=now,
        finished_at=now,
        # Runs of different tools or formats are not compared.
        parameters={"tool": form.tool, "format": form.name},
        factors={"treatment": [*loads]},
        treatments=[TreatmentRecord(name=name, levels={"treatment": name}) for name in loads],
        blocks=blocks,
        seed=0,
        order=[[*loads]] * blocks,
        backend=BACKEND,
        network_path=f"as {form.tool} was told",
        warnings=_warnings(form),
        notes={"import": {"missing": [*MISSING], "files": _files(loads)}},
    )


def _files(loads: Mapping[str, Sequence[ImportedLoad]]) -> dict[str, dict[str, Any]]:
    """Return name, size and SHA-256 of the file of each trial, by trial id."""
    return {
        trial_id(block, position, 0): {
            "name": load.path.name,
            "bytes": load.size_bytes,
            "sha256": load.sha256,
        }
        for position, group in enumerate(loads.values())
        for block, load in enumerate(group)
    }


def _warnings(form: Format) -> list[Remark]:
    text = f"The lab vouches for none of these numbers: {form.tool} counted them, not the lab."
    return [
        Remark(code="import.told", side="client", text=text),
        Remark(code="import.omission", side="client", text=form.omission),
    ]


@contextmanager
def _whole_run(root: Path, record: RunRecord) -> Iterator[RunWriter]:
    """Yield a writer in a temporary folder; the run takes its place when the block succeeds."""
    temporary = root / f".tmp-{record.run_id}"
    target = root / record.run_id
    try:
        writer = RunWriter.create(temporary, record)
        yield writer
        with explained(target, "nothing was recorded"):
            writer.path.rename(target)
            sync_folder(root)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
