"""Pack recorded runs into ``data/reference/``, for those who have not measured yet.

    python scripts/reference.py RUN...

A run of the same experiment and parameters that was there before is replaced. Only finished runs of
a commit without changes may ship.
"""

from __future__ import annotations

import sys

from perflab.api import open_run
from perflab.paths import reference_dir
from perflab.recordings import pack, reference_runs
from perflab.recordings.runs import question_of
from perflab.reports.ledger import LEDGER_FILE, reference_table


def main(names: list[str]) -> int:
    """Pack the named runs; return 1 where one may not ship."""
    runs = [open_run(name) for name in names]
    unfit = [
        run.run_id
        for run in runs
        if run.record.state != "finished" or run.record.code.get("dirty", True) or run.problems
    ]
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
        archive = pack(run, folder)
        print(f"{archive.name}: {archive.stat().st_size / 1024:,.0f} KiB")
    reference_table().to_csv(folder / LEDGER_FILE, index=False, lineterminator="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
