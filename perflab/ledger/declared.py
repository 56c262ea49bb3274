"""What experiments declare without measuring: plans, contrasts, settings and views."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from perflab import systems
from perflab.errors import PerflabError
from perflab.parameters import check
from perflab.published import Answer, Row, estimands
from perflab.published.answered_rows import SIZES
from perflab.recordings import Contrast, Run
from perflab.reports.pictures import declared_views
from perflab.trials.plan import RunPlan


def plan_of(answer: Answer) -> RunPlan:
    """Return the plan that an answer's experiment and parameters make.

    Raises
    ------
    PerflabError
        There is no such experiment, or it refuses the parameters.
    """
    return _plan(answer.experiment, answer.parameters)


@cache
def _plan(name: str, parameters: tuple[tuple[str, str], ...]) -> RunPlan:
    experiment = systems.experiment(name)
    return experiment.plan(check(experiment.parameters, dict(parameters), f"experiment '{name}'"))


def settings_of(answer: Answer) -> list[Any]:
    """Return all values that a parameter or factor of this name takes; raises as plan_of."""
    plan = plan_of(answer)
    value = plan.parameters.get(answer.name)
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return [*(each for each in values if each is not None), *plan.factors.get(answer.name, ())]


def view_fault(answer: Answer) -> str:
    """Return what an answer names that its system does not declare, or nothing; raises so."""
    view = declared_views(plan_of(answer).system).get(answer.view)
    if view is None:
        return f"there is no view '{answer.view}'"
    judged = view.judging.claims if view.judging else ()
    if answer.claim and answer.claim not in judged:
        return f"view '{view.name}' judges no '{answer.claim}'"
    return ""


def mismatch(row: Row, contrast: Contrast) -> str:
    """Return why a contrast may not judge a row: the rule "same estimand or no comparison".

    A size is judged only by a contrast of a response that measures the same (``estimands.csv``),
    and only where the experiment holds the load for the published one: otherwise its contrast has
    no published size. A claim in words may be judged by its direction alone.
    """
    if row.value is None or row.kind not in SIZES:
        return ""
    if contrast.response not in estimands().get((row.study, row.measure), frozenset()):
        return f"'{row.measure}' is not what {contrast.response} measures"
    sizes = (contrast.published_ratio, contrast.published_difference)
    if sizes == (None, None) and contrast.published_direction != "none":
        return "the load is not the published one"
    return ""


def standing(run: Run) -> Mapping[str, Contrast]:
    """Return the contrasts of a run that its experiment would ask today just so, by name.

    What was published may have been corrected since the run, or be of another estimand: then the
    verdict that the record leads to is one on something else.
    """
    try:
        experiment = systems.experiment(run.record.experiment)
        parameters = check(experiment.parameters, run.record.parameters, run.run_id)
        today = experiment.plan(parameters).contrasts
    except PerflabError:
        return {}
    asked = {_question(each) for each in today}
    return {each.name: each for each in run.record.contrasts if _question(each) in asked}


def _question(contrast: Contrast) -> str:
    """Return what is asked, in what words ever, and on whichever machine."""
    return contrast.model_dump_json(exclude={"claim", "source", "not_testable"})
