"""Parameters of a run: the given ones, or a recorded run's; and the order for the conductor."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from perflab.errors import ParameterError
from perflab.parameters import check
from perflab.paths import runs_dir
from perflab.recordings import REFERENCE, Run, is_reference, open_run
from perflab.trials.experiment import OF_THE_CALL, Experiment, RunParameters
from perflab.trials.plan import Order

PAPERMILL_MARK = "# Parameters"
# These values leave the choice open, so they contradict no recorded value.
OPEN: Mapping[str, Any] = {"backend": "auto", "seed": None, "warmup_s": None}
MISSING = object()


def asked_for(chosen: Experiment, given: Mapping[str, Any] | RunParameters) -> RunParameters:
    """Return the parameters of the run that the caller asks for.

    ``given`` has no defaults, since they would pass for values of the user.

    With ``from_run`` or ``resume`` the result has the recorded run's own parameters; one that it
    did not record is None. ``from_run`` and ``resume`` then name that run itself: "latest" may mean
    another run later. ParameterError names every parameter in which the run differs.
    """
    if isinstance(given, RunParameters):
        given = {name: getattr(given, name) for name in given.model_fields_set}
    references = [name for name in ("from_run", "resume") if given.get(name)]
    if not references:
        return chosen.check(given)
    if len(references) > 1:
        raise ParameterError(
            f"experiment '{chosen.name}'",
            ["from_run shows a run, and resume finishes one; give only one of them"],
        )
    reference = references[0]
    run = existing(str(given[reference]), chosen.name, reference)
    _refuse_contradictions(chosen, run, given, reference)
    has_id = run.path.parent == runs_dir() or is_reference(run)
    name = run.path.name if has_id else str(run.path)
    of_call = {"wait_s": given.get("wait_s", 0.0), reference: name}
    call = check(chosen.parameters, of_call, f"experiment '{chosen.name}'")
    call_values = {name: getattr(call, name) for name in OF_THE_CALL}
    return _as_recorded(chosen, run).model_copy(update=call_values)


def existing(reference: str, experiment: str, parameter: str) -> Run:
    """Open a recorded run of an experiment; ``parameter`` is the one that holds the reference.

    The word "reference" by itself is the run that ships with the lab.
    """
    word = f"{REFERENCE}:{experiment}" if reference == REFERENCE else reference
    run = open_run(word, runs_dir())
    if run.record.experiment != experiment:
        other = f"is one of experiment '{run.record.experiment}', not '{experiment}'"
        raise ParameterError(parameter, [f"run {run.run_id} {other}"])
    return run


def _parameters_of(chosen: Experiment, run: Run) -> dict[str, Any]:
    words = {**run.record.parameters, "backend": run.record.backend}
    return {name: value for name, value in words.items() if name in chosen.parameters.model_fields}


def _as_recorded(chosen: Experiment, run: Run) -> RunParameters:
    words = _parameters_of(chosen, run)
    missing = {name: None for name in chosen.parameters.model_fields if name not in words}
    try:
        checked = check(chosen.parameters, words, f"run {run.run_id}")
    except ParameterError:
        # Other values were allowed when the run was measured; the run shows its own.
        return chosen.parameters.model_construct(**{**missing, **words})
    return checked.model_copy(update=missing)


def _refuse_contradictions(
    chosen: Experiment, run: Run, given: Mapping[str, Any], reference: str
) -> None:
    words, recorded = _parameters_of(chosen, run), _as_recorded(chosen, run)
    differing = {
        name: value
        for name, value in given.items()
        if name not in OF_THE_CALL
        and not (name in OPEN and value == OPEN[name])
        and value != getattr(recorded, name, MISSING)
    }
    if not differing:
        return
    # Another spelling is no difference: "0,5" is [0.0, 5.0].
    respelled = check(chosen.parameters, {**words, **differing}, f"experiment '{chosen.name}'")
    problems = [
        f"{name} = {value!r} is given, the run has {words.get(name, 'none recorded')!r}"
        for name, value in differing.items()
        if getattr(respelled, name) != getattr(recorded, name)
    ]
    if problems:
        way_out = f"leave out what differs, or measure anew without {reference}"
        raise ParameterError(f"{reference} = {run.run_id}", [*problems, way_out])


def order_of(chosen: Experiment, checked: RunParameters) -> Order:
    """Return the order for a new run with these parameters, or for the rest of a run."""
    call: dict[str, Any] = {"runs": runs_dir(), "wait_s": checked.wait_s}
    if not checked.resume:
        return Order(plan=chosen.plan(checked), backend=checked.backend, **call)
    run = existing(checked.resume, chosen.name, "resume")
    # The run's own parameters, with its seed.
    plan = chosen.plan(chosen.check(run.record.parameters))
    return Order(plan=plan, backend=run.record.backend, resume=run.path, **call)


def injected_values(cells: Iterable[str]) -> dict[str, Any]:
    """Return the values that papermill injected, by name; ``MISSING`` for what is no literal."""
    values: dict[str, Any] = {}
    for cell in cells:
        if not cell.startswith(PAPERMILL_MARK):
            continue
        for statement in ast.parse(cell).body:
            if not isinstance(statement, ast.Assign):
                continue
            try:
                value = ast.literal_eval(statement.value)
            except ValueError:
                value = MISSING
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
            values |= dict.fromkeys(names, value)
    return values


def refuse_lost(injected: Mapping[str, Any], namespace: Mapping[str, Any]) -> None:
    """Refuse values that papermill injected before a cell that sets them again.

    papermill injects at the top of a notebook whose cell of defaults has lost its tag.
    """
    lost = [
        f"{name} = {value!r} was given, but the notebook has {namespace[name]!r}"
        for name, value in injected.items()
        if value is not MISSING and name in namespace and namespace[name] != value
    ]
    if lost:
        way_out = "set it in no later cell; the cell of defaults needs the tag 'parameters'"
        raise ParameterError("the notebook", [*lost, way_out])


def given_values(
    defaults: Mapping[str, Any], namespace: Mapping[str, Any], injected: Iterable[str]
) -> dict[str, Any]:
    """Return the parameters that papermill injected, unknown ones too, or the user changed.

    A notebook's parameters cell assigns every name, so a value equal to its default is unchanged.
    """
    changed = [
        name
        for name, default in defaults.items()
        if name in namespace and _as_tuple(namespace[name]) != default
    ]
    return {name: namespace[name] for name in dict.fromkeys([*injected, *changed])}


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
