"""The runs that verdicts are taken from, and published against measured over all experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from perflab import systems
from perflab.errors import ParameterError, PerflabError
from perflab.paths import runs_dir
from perflab.recordings import FREE_PARAMETERS, Run, Selected, list_runs, select
from perflab.recordings.schema import is_imported

BACKENDS = ("docker", "process")


def judged_runs(backend: str = "") -> list[Selected]:
    """Return the runs that verdicts are taken from, by experiment and backend.

    Runs with the same parameters and machine asked the same question. The one with the most
    complete blocks is chosen; it names the runs that it supersedes. See
    :func:`perflab.recordings.select`.

    Parameters
    ----------
    backend : str
        Only runs on this backend: docker or process (empty: both).

    Raises
    ------
    ParameterError
        There is no such backend.
    """
    if backend not in ("", *BACKENDS):
        raise ParameterError("backend", [f"'{backend}' is not {' or '.join(BACKENDS)}"])
    measured = (run for run in list_runs(runs_dir()) if not is_imported(run.record))
    return select(run for run in measured if backend in ("", run.record.backend))


def overview(backend: str = "") -> pd.DataFrame:
    """Return published against measured over all experiments, from :func:`judged_runs`."""
    return verdicts_of(judged_runs(backend))


def judged(backend: str = "") -> pd.DataFrame:
    """Return a row per run of :func:`judged_runs`: blocks, parameters, and what it superseded."""
    return choices_of(judged_runs(backend))


def verdicts_of(chosen: Sequence[Selected]) -> pd.DataFrame:
    """Return the verdicts on the claims; the column ``run`` names the run of each row."""
    from perflab.reports.verdicts import verdict_table

    runs = [selected.run for selected in chosen]
    tables = [verdict_table([run]).assign(run=short_id(run)) for run in runs]
    return pd.concat(tables, ignore_index=True) if tables else verdict_table([])


def choices_of(chosen: Sequence[Selected]) -> pd.DataFrame:
    """Return a row per chosen run: its changed parameters, and the runs that it supersedes."""
    rows = [
        {
            "run": selected.run.run_id,
            "complete blocks": selected.complete_blocks,
            "parameters": changed_parameters(selected.run) or "defaults",
            "superseded": "; ".join(selected.reasons()) or "none",
        }
        for selected in chosen
    ]
    return pd.DataFrame(rows, columns=["run", "complete blocks", "parameters", "superseded"])


def changed_parameters(run: Run) -> str:
    """Return a run's parameters that are not the defaults, as ``name=value``."""
    try:
        fields = systems.experiment(run.record.experiment).parameters.model_fields
    except PerflabError:
        fields = {}
    return ", ".join(
        f"{name}={_plain(value)}"
        for name, value in run.record.parameters.items()
        if name not in FREE_PARAMETERS
        and (name not in fields or _plain(value) != _plain(fields[name].get_default()))
    )


def _plain(value: Any) -> str:
    return ",".join(map(_plain, value)) if isinstance(value, (list, tuple)) else str(value)


def short_id(run: Run) -> str:
    """Return the end of a run's id, which tells the runs of one table apart."""
    return run.run_id.rpartition("-")[2]
