"""Writing imported loads as a run, which appears whole or not at all."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.durable import explained, sync_folder
from perflab.errors import ParameterError
from perflab.imports.columns import (
    declared_responses,
    not_judged,
    remarks_of,
    times_word,
    told_columns,
)
from perflab.imports.formats import Format, check_tool, common_format
from perflab.imports.loads import Load, check_names, loads_of
from perflab.imports.told import TABLE
from perflab.instruments.other_load import REQUEST
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
from perflab.recordings.schema import MOST_BLOCKS
from perflab.recordings.tables import NOT_JUDGED

EXPERIMENT = "imported"
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
    paired: bool = False
    corrected: bool = False


def import_files(wanted: Wanted, root: Path) -> Run:
    """Write the loads that files tell of as a run under ``root``, and return it.

    The k-th load of every treatment stands in the k-th block; only of paired ones that means that
    they belong together. One load is in memory at a time.

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
    check_names(wanted.groups, wanted.experiment, wanted.paired)
    every = [path for paths in wanted.groups.values() for path in paths]
    form = common_format(every, wanted.tool)
    if wanted.corrected and not form.can_be_corrected:
        problem = f"{form.tool}'s {form.name} says itself from when times count; leave it out"
        raise ParameterError("--corrected", [problem])
    loads = loads_of(wanted.groups, form, wanted.paired)
    record = _record(wanted, form, loads)
    with _whole_run(root, record) as writer:
        for position, (name, own) in enumerate(loads.items()):
            for block, load in enumerate(own):
                _commit(writer, wanted, form, (name, block, position), load)
    return Run(root / record.run_id)


def _commit(
    writer: RunWriter, wanted: Wanted, form: Format, place: tuple[str, int, int], load: Load
) -> None:
    told = form.reads(load.paths)
    name, block, position = place
    row: dict[str, Any] = {
        "trial_id": trial_id(block, position, 0),
        "block": block,
        "position": position,
        "attempt": 0,
        "treatment": name,
        "factor_treatment": name,
        "state": NOT_JUDGED,
        "started_at": told.settings.get("began", ""),
        "reasons": [not_judged(form)],
        "warnings": remarks_of(told, form, wanted.corrected),
        "told_by": ", ".join(path.name for path in load.paths),
        "told_settings": ", ".join(f"{name} {value}" for name, value in told.settings.items()),
        **told_columns(told, form, wanted.corrected),
    }
    tables = {} if told.rows is None else {TABLE: told.rows}
    writer.commit_trial(row, None, None, **tables)


def _record(wanted: Wanted, form: Format, loads: Mapping[str, Sequence[Load]]) -> RunRecord:
    now = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    blocks = min(max(map(len, loads.values())), MOST_BLOCKS)
    word = times_word(form, wanted.corrected)
    return RunRecord(
        run_id=new_run_id(wanted.experiment),
        experiment=wanted.experiment,
        title=f"Imported: {form.tool} ({form.name})",
        question=f"What did {form.tool} tell of {', '.join(loads)}?",
        responses=declared_responses(form, wanted.corrected),
        tables={TABLE: dict(REQUEST)},
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
                "paired": wanted.paired,
                "missing": [*MISSING],
                "files": {
                    trial_id(block, position, 0): [
                        {"name": file.path.name, "bytes": file.size_bytes, "sha256": file.sha256}
                        for file in load.files
                    ]
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
