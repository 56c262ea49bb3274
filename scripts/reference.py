"""Pack recorded runs into ``data/reference/``, for those who have not measured yet.

    python scripts/reference.py [--shown] RUN...

A run of the same experiment and parameters that was there before is replaced. Only finished runs of
a commit without changes may ship. The tables of figures that need rows of requests come with the
run that ``from_run = "reference"`` shows: the one of processes with the defaults, the one that was
packed with ``--shown``, or the first of its experiment.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from perflab import systems
from perflab.api import open_run
from perflab.figures.view import to_csv
from perflab.paths import reference_dir
from perflab.recordings import FREE_PARAMETERS, Run, reference_runs
from perflab.recordings.columns import STREAMED, TABLES
from perflab.recordings.files import FILE, describe
from perflab.recordings.reference import MAIN, SUFFIX, TABLES_OF_VIEWS
from perflab.recordings.runs import question_of
from perflab.recordings.schema import FILE as RECORD
from perflab.recordings.store import as_json
from perflab.reports.figures import views_of
from perflab.reports.ledger import LEDGER_FILE, reference_table

SHOWN = "--shown"


def without_rows(run: Run, target: Path, *, all_samples: bool = True) -> Run:
    """Copy a run to a new folder, without the rows of requests and of what came in streams.

    Without ``all_samples`` trials that did not share their time keep few of them. Nor does the copy
    say in which folder of its machine the interpreter was.
    """
    shutil.copytree(run.path, target)
    environment = {
        name: value for name, value in run.record.environment.items() if name != "prefix"
    }
    record = run.record.model_copy(update={"environment": environment})
    (target / RECORD).write_bytes(as_json(record))
    for kind in ("requests", *STREAMED):
        for table in target.glob(f"trials/*/{kind}.parquet"):
            pq.write_table(TABLES[kind].empty_table(), table)
    for trial in target.glob("trials/*"):
        if not all_samples and not run.record.shares_time:
            _thin(trial)
        for table in trial.glob("*.parquet"):
            # An archive of plain tables is a third smaller than one of compressed ones.
            pq.write_table(pq.read_table(table), table, compression="none", use_dictionary=False)
        (trial / FILE).unlink()
        (trial / FILE).write_bytes(describe(trial))
    return Run(target)


def _thin(trial: Path) -> None:
    """Keep the samples of one instant a second, and those around begin and end of the measuring."""
    (row,) = pq.read_table(trial / "trial.parquet", columns=["begin_ns", "end_ns"]).to_pylist()
    samples = pq.read_table(trial / "samples.parquet")
    table = samples.to_pandas().sort_values("t_ns", kind="stable")
    second = table["t_ns"] // 1_000_000_000
    kept = ~table.assign(second=second).duplicated(["service", "second"])
    for at_ns in (row["begin_ns"], row["end_ns"]):
        before, after = table[table["t_ns"] <= at_ns], table[table["t_ns"] >= at_ns]
        kept[before.groupby("service").tail(1).index] = True
        kept[after.groupby("service").head(1).index] = True
    kept[table.groupby("service").tail(1).index] = True
    chosen = samples.filter(pa.array(kept.sort_index().to_numpy()))
    pq.write_table(chosen, trial / "samples.parquet")


def pack(
    run: Run,
    folder: Path,
    beside: Mapping[str, str] | None = None,
    *,
    all_samples: bool = True,
) -> Path:
    """Write a run as ``without_rows`` copies it as an archive into ``folder``; return its path.

    ``beside`` are texts to put beside it, by their places in its folder. Without ``all_samples`` it
    has the samples of one instant a second, and what shares of CPU need.
    """
    archive = folder / f"{run.run_id}{SUFFIX}"
    with TemporaryDirectory() as place, tarfile.open(archive, "w:xz", preset=9) as packed:
        copy = without_rows(run, Path(place) / run.run_id, all_samples=all_samples)
        for name, text in (beside or {}).items():
            (copy.path / name).parent.mkdir(exist_ok=True)
            (copy.path / name).write_text(text)
        packed.add(copy.path, run.run_id)
    return archive


def tables_of(run: Run) -> dict[str, str]:
    """Return the tables of the views that need the rows of requests, which do not ship."""
    with TemporaryDirectory() as place:
        rest = without_rows(run, Path(place) / run.run_id)
        lacking = [view for view in views_of(run) if view.shown(rest).empty]
    tables = {view.name: view.shown(run) for view in lacking}
    return {
        f"{TABLES_OF_VIEWS}/{name}.csv": to_csv(table)
        for name, table in tables.items()
        if len(table)
    }


def has_defaults(run: Run) -> bool:
    """Return whether a run of processes has the defaults of its experiment, or of its preset."""
    if run.record.backend != "process":
        return False
    parameters = run.record.parameters
    chosen = {"preset": parameters["preset"]} if "preset" in parameters else {}
    defaults = systems.experiment(run.record.experiment).check(chosen).model_dump(mode="json")
    free = {*FREE_PARAMETERS, "from_run", "resume", "wait_s"}
    return all(
        defaults.get(name) == value for name, value in parameters.items() if name not in free
    )


def main(names: list[str]) -> int:
    """Pack the named runs; return 1 where one may not ship."""
    runs = [open_run(name) for name in names if name != SHOWN]
    unfit = [
        run.run_id
        for run in runs
        if run.record.state != "finished" or run.record.code.get("dirty", True) or run.problems
    ]
    if SHOWN in names and len(runs) != 1:
        print(f"{SHOWN} takes one run")
        return 1
    if unfit or not runs:
        listed = ", ".join(unfit) or "none is named"
        print(f"not finished, of a changed checkout, or damaged: {listed}")
        return 1
    folder = reference_dir()
    folder.mkdir(parents=True, exist_ok=True)
    for run in runs:
        for old in reference_runs():
            if question_of(old.record) == question_of(run.record) and old.run_id != run.run_id:
                (folder / f"{old.run_id}.tar.xz").unlink()
        is_main = has_defaults(run) or SHOWN in names
        name = run.record.experiment
        ships = [old.run_id for old in reference_runs() if old.record.experiment == name]
        is_shown = is_main or ships[:1] in ([], [run.run_id])
        beside = tables_of(run) if is_shown else {}
        beside |= {MAIN: ""} if is_main else {}
        archive = pack(run, folder, beside, all_samples=is_shown)
        print(f"{archive.name}: {archive.stat().st_size / 1024:,.0f} KiB")
    reference_table().to_csv(folder / LEDGER_FILE, index=False, lineterminator="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
