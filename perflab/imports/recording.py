"""Writing imported loads as a run, which appears whole or not at all."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.durable import explained, sync_folder
from perflab.errors import ImportRefused, ParameterError, RecordingError
from perflab.imports.formats import Format, check_tool, common_format
from perflab.imports.told import (
    declared_responses,
    not_judged,
    remarks_of,
    times_word,
    told_columns,
)
from perflab.recordings import (
    Remark,
    Run,
    RunRecord,
    RunWriter,
    TreatmentRecord,
    new_run_id,
    trial_id,
)
from perflab.recordings.imported import BACKEND
from perflab.recordings.opening import open_plain
from perflab.recordings.schema import MOST_BLOCKS, MOST_TREATMENTS
from perflab.recordings.tables import NOT_JUDGED

EXPERIMENT = "imported"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,=+:-]{0,99}", re.ASCII)
EXPERIMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
MISSING = (
    "planned instants", "generator lag", "the client's CPU and stalls",
    "CPU and memory of services", "what the server counted", "facts of the machine",
)  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """What was asked to be imported; ``groups`` are the files of every treatment."""

    groups: Mapping[str, Sequence[Path]]
    tool: str = ""
    experiment: str = EXPERIMENT
    corrected: bool = False


@dataclass(frozen=True)
class SourceFile:
    """A file as it was imported."""

    path: Path
    size_bytes: int
    sha256: str


def import_files(wanted: Wanted, root: Path) -> Run:
    """Write the loads that files tell of as a run under ``root``, and return it.

    The k-th load of every treatment stands in the k-th block; that pairs nothing. One load is in
    memory at a time.

    Raises
    ------
    ParameterError
        What was asked for cannot be; nothing was written.
    ImportRefused
        A file is damaged, or of another tool; nothing was written.
    RecordingError
        The run cannot be written.
    """
    check_tool(wanted.tool)
    _check_names(wanted.groups, wanted.experiment)
    every = [path for paths in wanted.groups.values() for path in paths]
    form = common_format(every, wanted.tool)
    if wanted.corrected and not form.can_be_corrected:
        problem = f"{form.tool}'s {form.name} says itself from when times count; leave it out"
        raise ParameterError("--corrected", [problem])
    loads = _loads(wanted.groups)
    record = _record(wanted, form, loads)
    with _whole_run(root, record) as writer:
        for position, (name, own) in enumerate(loads.items()):
            for block, load in enumerate(own):
                _commit(writer, wanted, form, (name, block, position), load)
    return Run(root / record.run_id)


def _check_names(groups: Mapping[str, Sequence[Path]], experiment: str) -> None:
    """Refuse treatments that cannot be named so, or have no or too many files.

    Raises
    ------
    ParameterError
        Lists every problem.
    """
    problems = [
        f"treatment '{name:.100}': a name has letters, digits and _ . , = + : -, at most 100"
        for name in groups
        if not NAME.fullmatch(name)
    ]
    if not EXPERIMENT_NAME.fullmatch(experiment):
        problems.append(f"experiment '{experiment:.100}': a name has letters, digits and _ . -")
    problems += [f"treatment '{name}' has no file" for name, own in groups.items() if not own]
    if not groups:
        problems.append("no file was named; write perflab import FILE...")
    if len(groups) > MOST_TREATMENTS:
        problems.append(f"there are {len(groups):,} treatments, at most {MOST_TREATMENTS:,}")
    if any(len(own) > MOST_BLOCKS for own in groups.values()):
        problems.append(f"a treatment has at most {MOST_BLOCKS:,} files")
    if problems:
        raise ParameterError("perflab import", problems)


def _loads(groups: Mapping[str, Sequence[Path]]) -> dict[str, list[SourceFile]]:
    """Return the files of every treatment, in their order.

    Raises
    ------
    ImportRefused
        A file is given twice, or one cannot be read.
    """
    seen: dict[str, Path] = {}
    return {name: [_source(path, seen) for path in paths] for name, paths in groups.items()}


def _source(path: Path, seen: dict[str, Path]) -> SourceFile:
    try:
        with open_plain(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
    except (OSError, RecordingError) as error:
        raise ImportRefused(f"{path}: {error}") from None
    if digest in seen:
        raise ImportRefused(f"{path}: it is the same as {seen[digest]}; every load counts once")
    seen[digest] = path
    return SourceFile(path, size, digest)


def _commit(
    writer: RunWriter, wanted: Wanted, form: Format, place: tuple[str, int, int], load: SourceFile
) -> None:
    told = form.reads(load.path)
    name, block, position = place
    row: dict[str, Any] = {
        "trial_id": trial_id(block, position, 0),
        "block": block,
        "position": position,
        "attempt": 0,
        "treatment": name,
        "factor_treatment": name,
        "state": NOT_JUDGED,
        "started_at": "",
        "reasons": [not_judged(form.tool)],
        "warnings": remarks_of(told, form.tool, wanted.corrected),
        "told_by": load.path.name,
        **told_columns(told, wanted.corrected),
    }
    writer.commit_trial(row, None, None)


def _record(wanted: Wanted, form: Format, loads: Mapping[str, Sequence[SourceFile]]) -> RunRecord:
    now = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    blocks = min(max(map(len, loads.values())), MOST_BLOCKS)
    word = times_word(wanted.corrected)
    return RunRecord(
        run_id=new_run_id(wanted.experiment),
        experiment=wanted.experiment,
        title=f"Imported: {form.tool} ({form.name})",
        question=f"What did {form.tool} tell of {', '.join(loads)}?",
        responses=declared_responses(form.tool, wanted.corrected),
        state="finished",
        created_at=now,
        finished_at=now,
        # Runs with other ones are not compared.
        parameters={"tool": form.tool, "format": form.name, "times": word},
        factors={"treatment": [*loads]},
        treatments=[TreatmentRecord(name=name, levels={"treatment": name}) for name in loads],
        blocks=blocks,
        seed=0,
        order=[[*loads]] * blocks,
        backend=BACKEND,
        network_path=f"as {form.tool} was told",
        warnings=_warnings(form, wanted.corrected),
        notes={
            "import": {
                "missing": [*MISSING],
                "files": {
                    trial_id(block, position, 0): {
                        "name": load.path.name,
                        "bytes": load.size_bytes,
                        "sha256": load.sha256,
                    }
                    for position, own in enumerate(loads.values())
                    for block, load in enumerate(own)
                },
            }
        },
    )


def _warnings(form: Format, corrected: bool) -> list[Remark]:
    omission = form.omission
    if corrected:
        omission = f"Corrected, as --corrected says: {form.tool} counted from its plan."
    vouched = f"The lab vouches for none of these numbers: {form.tool} counted them, not the lab."
    return [
        Remark(code="import.told", side="client", text=vouched),
        Remark(code="import.omission", side="client", text=omission),
    ]


@contextmanager
def _whole_run(root: Path, record: RunRecord) -> Iterator[RunWriter]:
    """Give a writer in a temporary folder; the run takes its place when the block ends well."""
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
