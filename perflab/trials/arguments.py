"""Parameters of a run: the given ones, or a recorded run's; and the order for the conductor."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perflab import credentials
from perflab.errors import ParameterError
from perflab.load.literals import FORMS, by_reference
from perflab.parameters import check, did_you_mean
from perflab.paths import runs_dir
from perflab.project import OF_THE_NOTEBOOK
from perflab.recordings import REFERENCE, Run, is_reference, open_run
from perflab.stacks.spec import load_service
from perflab.trials.experiment import Experiment
from perflab.trials.parameter_file import VARIANTS
from perflab.trials.plan import Order, RunPlan
from perflab.trials.run_parameters import OF_THE_CALL, RunParameters

# The first line of the cell that papermill injects, and what it adds with --inject-paths.
PAPERMILL_MARK = "# Parameters"
PAPERMILLS_OWN = ("PAPERMILL_INPUT_PATH", "PAPERMILL_OUTPUT_PATH")
# What such a magic stands above is run as it is.
PYTHON_MAGICS = ("time", "capture")
OWN_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
# These values leave the choice open, so they contradict no recorded value.
OPEN: Mapping[str, Any] = {"backend": "auto", "seed": None, "warmup_s": None}
# What a run that was measured without can still be asked for, by ``resume``.
LATER = "why"
# The parameter that names variants by a revision.
AGAINST = "against"
MISSING = object()
# The parameter that names a file with values of others.
PROJECT, HEADERS = "project", "headers"
# The name of an entry of a list: NAME=VALUE, NAME: VALUE, or NAME alone.
ENTRY = re.compile(r"[\w.-]+(?=[=:]|$)")


def asked_for(chosen: Experiment, given: Mapping[str, Any] | RunParameters) -> RunParameters:
    """Return the parameters of the run that the caller asks for.

    ``given`` has no defaults, since they would pass for values of the user.

    With ``from_run`` or ``resume`` the result has the recorded run's own parameters; one that it
    did not record is None. ``from_run`` and ``resume`` then name that run itself: "latest" may mean
    another run later. ``why`` can be added to a run that is resumed. ParameterError names every
    other parameter in which the run differs.
    """
    checked = given if isinstance(given, chosen.parameters) else None
    if isinstance(given, RunParameters):
        given = {name: getattr(given, name) for name in given.model_fields_set}
    try:
        referring = by_reference(given)
    except ValueError as error:
        raise ParameterError(f"experiment '{chosen.name}'", [str(error)]) from None
    references = [name for name in ("from_run", "resume") if given.get(name)]
    if not references:
        return checked if checked and referring == given else chosen.check(referring)
    given = referring
    if len(references) > 1:
        raise ParameterError(
            f"experiment '{chosen.name}'",
            ["from_run shows a run, and resume finishes one; give only one of them"],
        )
    reference = references[0]
    run = existing(str(given[reference]), chosen.name, reference)
    recorded = _as_recorded(chosen, run)
    _refuse_contradictions(chosen, run, recorded, given, reference)
    has_id = run.path.parent == runs_dir() or is_reference(run)
    name = run.path.name if has_id else str(run.path)
    later = (LATER,) if reference == "resume" and given.get(LATER) else ()
    of_call = {"wait_s": given.get("wait_s", 0.0), reference: name}
    of_call |= {name: given[name] for name in later}
    call = check(chosen.parameters, of_call, f"experiment '{chosen.name}'")
    call_values = {name: getattr(call, name) for name in (*OF_THE_CALL, *later)}
    return recorded.model_copy(update=call_values)


def existing(reference: str, experiment: str, parameter: str) -> Run:
    """Open a recorded run of an experiment; ``parameter`` is the one that holds the reference.

    The word "reference" by itself is the run that ships with the lab, and "latest" for ``resume``
    is the newest run that is not finished.
    """
    word = f"{REFERENCE}:{experiment}" if reference == REFERENCE else reference
    run = open_run(word, runs_dir(), unfinished=parameter == "resume")
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
    chosen: Experiment,
    run: Run,
    recorded: RunParameters,
    given: Mapping[str, Any],
    reference: str,
) -> None:
    words = _parameters_of(chosen, run)
    differing = {
        name: value
        for name, value in given.items()
        if name not in OF_THE_CALL
        and not (name in OPEN and value == OPEN[name])
        and value != getattr(recorded, name, MISSING)
    }
    if not differing:
        return
    names, anew = [*differing], words
    if AGAINST in differing and VARIANTS not in given:
        # The revision names the variants once more.
        anew = {name: value for name, value in words.items() if name != VARIANTS}
        names.append(VARIANTS)
    # Another spelling is no difference: "0,5" is [0.0, 5.0].
    respelled = check(chosen.parameters, {**anew, **differing}, f"experiment '{chosen.name}'")
    problems = [
        f"{name} = {getattr(respelled, name)!r} is given, the run has "
        f"{words.get(name, 'none recorded')!r}"
        for name in names
        if getattr(respelled, name) != getattr(recorded, name)
        and not credentials.stand_in(getattr(respelled, name), getattr(recorded, name))
        and not (reference == "resume" and name == LATER and getattr(respelled, name))
    ]
    if problems:
        way_out = f"leave out what differs, or measure anew without {reference}"
        raise ParameterError(f"{reference} = {run.run_id}", [*problems, way_out])


def order_of(chosen: Experiment, checked: RunParameters) -> Order:
    """Return the order for a new run with these parameters, or for the rest of a run."""
    call: dict[str, Any] = {"runs": runs_dir(), "wait_s": checked.wait_s}
    if not checked.resume:
        plan = chosen.plan(checked)
        values = credentials_of(plan, f"experiment '{chosen.name}'")
        return Order(plan=plan, backend=checked.backend, credentials=values, **call)
    run = existing(checked.resume, chosen.name, "resume")
    # The run's own parameters, with its seed.
    later = {LATER: True} if getattr(checked, LATER, False) else {}
    plan = chosen.plan(chosen.check({**run.record.parameters, **later}))
    call["credentials"] = credentials_of(plan, f"resume = {run.run_id}")
    return Order(plan=plan, backend=run.record.backend, resume=run.path, **call)


def credentials_of(plan: RunPlan, subject: str) -> dict[str, str]:
    """Return the values of all references of a plan and of its services, by name.

    Raises ParameterError for those that have none; it names the parameters that need them.
    """
    nodes = {node.service for item in plan.treatments for node in item.stack.nodes}
    described = [load_service(name).model_dump_json() for name in sorted(nodes)]
    values, problems = dict[str, str](), list[str]()
    for name in credentials.names_in("\n".join([plan.model_dump_json(), *described])):
        known, missing = credentials.look_up([name])
        values |= known
        needing = _needing(name, plan.parameters)
        by = f"; needed by {', '.join(needing)}" if needing else ""
        of_headers = credentials.names_in(json.dumps(plan.parameters.get(HEADERS)))
        hint = " (-H 'Authorization: env:NAME')" * (name in of_headers)
        way_out = f"set it, or give its value or another variable instead{hint}"
        problems += [f"{problem}: {way_out}{by}" for problem in missing]
    if problems:
        raise ParameterError(subject, problems)
    return values


def _needing(variable: str, parameters: Mapping[str, Any]) -> list[str]:
    """Return the parameters that hold a variable, without values: ``env TOKENS``, ``path``."""
    found = []
    for name, value in parameters.items():
        for entry in value if isinstance(value, list | tuple) else [value]:
            if variable not in credentials.names_in(json.dumps(entry)) and entry != variable:
                continue
            if isinstance(entry, Mapping):
                parts = [part for part in entry if variable in
                         credentials.names_in(json.dumps(entry[part]))]  # fmt: skip
                of = f"the {name.removesuffix('s')} '{entry.get('name', '')}'"
                found.append(f"{' and '.join(parts)} of {of}")
            else:
                head = ENTRY.match(entry) if entry is not value else None
                found.append(f"{name} {head[0]}" if head else name)
    return list(dict.fromkeys(found))


def notebook_values(defaults: Mapping[str, Any], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a notebook that papermill injected or the user changed.

    ``defaults`` has every parameter of the experiment, and ``namespace`` the notebook's variables.
    Of cells that were run several times the last time counts. The cell of defaults (``name: type =
    value``) names every parameter, so that a value equal to its default is unchanged. Injected
    values are there whatever their names. What a project's notebook began with is unchanged where
    a recorded run is named: that run has other values.

    ParameterError where that cell has another name or lacks one, and where a value that papermill
    injected was set again by it, because it has lost its tag: papermill then injects before it. A
    cell may lack what a project's file can hold, unless it has a value that nobody sees there.
    """
    cells = [_statements(cell) for cell in namespace.get("In", ())]
    injections = [
        number
        for number, text in enumerate(namespace.get("In", ()))
        if text.partition("\n")[0].strip() == PAPERMILL_MARK
    ]
    named = [
        number
        for number, cell in enumerate(cells)
        if number not in injections and _is_list_of(defaults, _set_in(cell))
    ]
    # Where no cell has the types any more, one that names most parameters is the cell of defaults.
    listed = [n for n, cell in enumerate(cells) if _is_list_of(defaults, _annotated(cell))] or named
    injected = _assigned(cells[injections[-1]]) if injections else {}
    changed = [
        name
        for name, default in defaults.items()
        if name in namespace and _as_tuple(namespace[name]) != default
    ]
    if listed:
        hidden = [name for name in changed if name not in injected]
        _refuse_other_names(
            _set_in(cells[listed[-1]]), defaults, hidden if PROJECT in defaults else defaults
        )
    if not listed or (injections and injections[0] < listed[0]):
        _refuse_lost(injected, namespace)
    if namespace.get("from_run") or namespace.get("resume"):
        changed = [name for name in changed if namespace[name] != OF_THE_NOTEBOOK.get(name)]
    return {name: namespace[name] for name in dict.fromkeys([*injected, *changed])}


def _statements(cell: str) -> list[ast.stmt]:
    """Return the statements of a cell, or below its magic; none where it is no plain Python."""
    try:
        statements = ast.parse(cell).body
    except (SyntaxError, ValueError):
        return []
    match statements:
        case [
            ast.Expr(
                ast.Call(
                    ast.Attribute(attr="run_cell_magic"),
                    [ast.Constant(magic), _, ast.Constant(str(text))],
                )
            )
        ] if magic in PYTHON_MAGICS:
            return _statements(text)
    return statements


def _set_in(cell: Iterable[ast.AST]) -> list[str]:
    """Return the names that a cell sets, at any depth, with an annotation or without.

    Names within functions and classes are their own.
    """
    names: list[str] = []
    for node in cell:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            inner = [name for target in targets for name in ast.walk(target)]
            names += [
                name.id
                for name in inner
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            ]
        if not isinstance(node, OWN_SCOPES):
            names += _set_in(ast.iter_child_nodes(node))
    return [name for name in dict.fromkeys(names) if name not in PAPERMILLS_OWN]


def _annotated(cell: Iterable[ast.stmt]) -> list[str]:
    return [
        item.target.id
        for item in cell
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    ]


def _is_list_of(parameters: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Return whether names have more than half of the parameters."""
    return len({*names} & {*parameters}) > len(parameters) / 2


def _refuse_other_names(
    names: Sequence[str], parameters: Mapping[str, Any], needed: Iterable[str]
) -> None:
    lacking = [name for name in needed if name not in names]
    problems = [
        f"'{name}' is no parameter{did_you_mean(name, lacking or parameters)}"
        for name in names
        if name not in parameters
    ]
    if lacking:
        problems.append(f"the cell of defaults lacks {', '.join(lacking)}: add it again")
    if problems:
        raise ParameterError("the notebook", problems)


def _assigned(cell: Iterable[ast.stmt]) -> dict[str, Any]:
    """Return the values that a cell assigns, by name; ``MISSING`` for what is no literal."""
    values: dict[str, Any] = {}
    for statement in cell:
        if not isinstance(statement, ast.Assign):
            continue
        try:
            value = ast.literal_eval(statement.value)
        except ValueError:
            value = MISSING
        names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        values |= {name: value for name in names if name not in PAPERMILLS_OWN}
    return values


def _refuse_lost(injected: Mapping[str, Any], namespace: Mapping[str, Any]) -> None:
    lost = [
        f"{name} = {_shown(name, value)!r} was given, "
        f"but the notebook has {_shown(name, namespace[name])!r}"
        for name, value in injected.items()
        if value is not MISSING and name in namespace and namespace[name] != value
    ]
    if lost:
        way_out = "set it in no later cell; the cell of defaults needs the tag 'parameters'"
        raise ParameterError("the notebook", [*lost, way_out])


def _shown(name: str, value: Any) -> Any:
    return by_reference({name: value})[name] if name in FORMS else value


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
