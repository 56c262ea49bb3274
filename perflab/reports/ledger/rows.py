"""The rows of the ledger, and which contrasts may judge them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from perflab import systems
from perflab.parameters import parse_assignments
from perflab.recordings import Contrast, claims, studies
from perflab.recordings.published_results import numbers, shared_rows
from perflab.recordings.published_rows import Claim, Estimand, ReasonText, Row

if TYPE_CHECKING:
    from perflab.trials.experiment import Experiment
    from perflab.trials.plan import RunPlan
    from perflab.trials.run_parameters import RunParameters

# Rows of these kinds are sizes: only the same estimand at the same load judges them.
SIZES = ("result", "effect", "derived", "figure", "target")
_experiment = cache(systems.experiment)


def rows(study: str = "") -> list[Row]:
    """Return the published rows of a study, or of all: numbers first, in the order of their files.

    RecordingError where there is no such study, or a row is not as wanted.
    """
    names = [study] if study else studies()
    found: list[Row] = []
    for name in names:
        found += [*numbers(name), *claims(name)]
    return found


def reasons() -> dict[str, str]:
    """Return the sentences that say why rows cannot be compared or tested, by key."""
    return {row.reason: row.text for row in shared_rows("reasons", ReasonText)}


def estimands() -> dict[tuple[str, str], set[str]]:
    """Return the responses that measure the same as a published measure, by study and measure.

    Rows of a measure that is missing here are compared with no contrast.
    """
    responses: dict[tuple[str, str], set[str]] = {}
    for row in shared_rows("estimands", Estimand):
        responses.setdefault((row.study, row.measure), set()).add(row.response)
    return responses


def mismatch(row: Row, contrast: Contrast) -> str:
    """Return why a contrast may not judge a row: the rule "same estimand or no comparison".

    A size is judged only by a contrast of a response that measures the same (``estimands.csv``),
    and only at the published load: an experiment at another load gives its contrast no published
    size. A claim in words may be judged by its direction alone.
    """
    if isinstance(row, Claim) or row.kind not in SIZES:
        return ""
    if contrast.response not in estimands().get((row.study, row.measure), frozenset()):
        return f"'{row.measure}' is not what {contrast.response} measures"
    sizes = (contrast.published_ratio, contrast.published_difference)
    if sizes == (None, None) and contrast.published_direction != "none":
        return "the load is not the published one"
    return ""


def plan_of(row: Row) -> RunPlan:
    """Return the plan of the experiment that answers a row, with the row's parameters."""
    return _plan(row.experiment, row.parameters)


def settings_of(row: Row) -> list[Any]:
    """Return what the parameter or the factor of a row's name is in the experiment of the row."""
    experiment, parameters = _checked(row.experiment, row.parameters)
    of_run = parameters.model_dump(mode="json").get(row.item, ())
    return [*np.ravel(of_run), *experiment.levels(parameters).get(row.item, ())]


@cache
def _plan(name: str, assignments: str) -> RunPlan:
    experiment, parameters = _checked(name, assignments)
    return experiment.plan(parameters)


def _checked(name: str, assignments: str) -> tuple[Experiment, RunParameters]:
    experiment = _experiment(name)
    return experiment, experiment.check(parse_assignments(assignments.split()))
