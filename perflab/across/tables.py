"""Trials and effects of any set of runs in one call."""

from __future__ import annotations

import pandas as pd

from perflab.across.choosing import Which, chosen_rows
from perflab.across.run_columns import framed
from perflab.analysis.treatments.effect_rows import effects_kept
from perflab.recordings import trials_kept


def trials_of(which: Which = "", *, backend: str = "", since: str = "") -> pd.DataFrame:
    """Return the trials of any set of runs, a row each, oldest run first.

    Parameters
    ----------
    which : str, Path, Run or iterable of them
        Experiments, and runs by id, unique prefix or path; nothing: all runs.
    backend : str
        Only runs on this one: docker or process.
    since : str
        Only runs from then on, as ``2026-11-21`` or ``2026-11-21T10:30`` (UTC).

    Returns
    -------
    DataFrame
        Columns of the run: ``run``, ``experiment``, ``backend``, ``run_state``, ``created_at``
        (UTC), ``commit``, ``dirty``, ``code`` (fingerprint), ``machine``, ``machine_id``,
        ``question_id`` (equal where runs may stand together), and ``parameter_<name>`` of those
        that differ between the runs; then those of the trial
        (:meth:`perflab.recordings.Run.trials` without lists). Trials of every state are in it,
        also superseded ones. ``.attrs["problems"]`` names runs and trials that are damaged and
        left out.

    Raises
    ------
    ParameterError
        There is no such experiment, run, backend or time.
    """
    return framed(chosen_rows(trials_kept(), which, backend, since))


def effects(which: Which = "", *, backend: str = "", since: str = "") -> pd.DataFrame:
    """Return the effects of any set of runs, a row per run and contrast, oldest run first.

    Parameters and columns of the run are those of :func:`trials_of`; the others are
    ``contrast``, ``claim``, ``response``, ``scale`` (ratio, or a difference in ``unit``),
    ``effect`` with ``low``, ``high`` and their ``confidence``, ``n`` (blocks), ``p_value``,
    ``p_adjusted``, ``verdict``, and why there is no number (``bound``, ``absent``).
    """
    return framed(chosen_rows(effects_kept(), which, backend, since))
