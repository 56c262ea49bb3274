"""From the options of ``perflab load`` to a workload; every problem is told at once."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from perflab.errors import ParameterError, TargetRefused
from perflab.load.objective_words import objectives
from perflab.load.options import Options
from perflab.load.prepared import Prepared
from perflab.load.record_place import file_problems, folder_problems
from perflab.load.requested import connections, request, transport
from perflab.load.requested_arrivals import arrivals
from perflab.load.targets import refuse_foreign, split
from perflab.load.workload import Workload


def workload(options: Options) -> Workload:
    """Return the workload that options describe.

    Raises
    ------
    ParameterError
        Lists every problem; nothing was started.
    TargetRefused
        The host is neither loopback nor allowed.
    """
    refuse_foreign(options.url, options.allow_targets)
    origin, path = split(options.url)
    if origin.scheme not in ("http", "https"):
        raise TargetRefused(f"'{options.url}': load goes to http and https addresses")
    problems = options.problems
    words = {
        "request": request(options, path),
        "arrivals": arrivals(options),
        "connections": connections(options),
        "timeout_s": options.timeout,
        **transport(options),
        "stop": {
            "failures": options.stop_after_failures,
            "failure_share": options.stop_failure_share,
            "objectives": objectives(options),
        },
    }
    if options.out:
        problems.extend(folder_problems("--out", Path(options.out)))
    if options.csv and options.csv != "-":
        problems.extend(file_problems("--csv", Path(options.csv)))
    if options.report:
        problems.extend(file_problems("--report", Path(options.report)))
    made = None
    if not problems:
        try:
            made = Workload.model_validate(words)
            Prepared(made.request, origin, made.connections)
        except ValidationError as error:
            problems.extend(_readable(error))
        except ParameterError as error:
            problems.extend(error.problems)
    if problems or made is None:
        raise ParameterError("perflab load", problems)
    return made


def _readable(error: ValidationError) -> list[str]:
    names = {
        "timeout_s": "--timeout",
        "duration_s": "--duration",
        "max_duration_s": "--duration",
        "connections.requests": "--requests-per-connection",
        "idle_s": "--idle",
        "churn_per_s": "--churn",
        "most": "--connections",
        "connections": "",
        "request": "",
    }
    problems = []
    for item in error.errors():
        place = [str(part) for part in item["loc"] if part not in ("closed", "open", "burst")]
        usual = "--" + place[-1].replace("_", "-") if place else ""
        name = names.get(".".join(place), names.get(place[-1], usual)) if place else ""
        given = item["input"] if isinstance(item["input"], (str, int, float)) else None
        shown = f" (given: {given!r})" if given is not None else ""
        problems.append(f"{name}: {item['msg'].removeprefix('Value error, ')}{shown}".strip(": "))
    return problems
