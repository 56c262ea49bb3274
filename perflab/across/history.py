"""One effect over all finished runs of an experiment: did it change, and when?"""

from __future__ import annotations

import pandas as pd

from perflab.across.choosing import chosen_rows
from perflab.across.run_columns import apart, framed
from perflab.analysis.treatments.effect_rows import effects_kept
from perflab.analysis.treatments.trends import series_of
from perflab.errors import ParameterError
from perflab.numerals import counted
from perflab.parameters import did_you_mean
from perflab.reports.trends import Trend


def trend(
    experiment: str,
    *,
    contrast: str = "",
    response: str = "",
    backend: str = "",
    since: str = "",
) -> Trend:
    """Return an experiment's effects over its finished runs, with changes of their level.

    Runs on unlike machines or backends, or with other parameters, are series of their own.

    Parameters
    ----------
    experiment : str
        Its name.
    contrast, response : str
        Only this contrast; only contrasts of this response.
    backend, since : str
        Only such runs; see :func:`trials_of`.

    Raises
    ------
    ParameterError
        There is no such experiment, contrast, response, backend or time.
    """
    found = chosen_rows(effects_kept(), experiment, backend, since)
    table = framed(found)
    for name, value in (("contrast", contrast), ("response", response)):
        table = _only(table, name, value)
    finished = table[table["run_state"] == "finished"]
    unfinished = sum(facts.state != "finished" for facts in found.facts.values())
    left_out = counted(unfinished, "unfinished run")
    return Trend(
        experiment,
        tuple(series_of(finished)),
        apart(finished, found.facts.values()),
        (f"left out: {left_out}",) if unfinished else (),
        tuple(found.problems),
    )


def _only(table: pd.DataFrame, name: str, value: str) -> pd.DataFrame:
    if not value or table.empty:
        return table
    known = sorted(set(table[name]))
    if value not in known:
        raise ParameterError(
            name,
            [f"no {name} '{value}'{did_you_mean(value, known)}; there are: {', '.join(known)}"],
        )
    return table[table[name] == value]
