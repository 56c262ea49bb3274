"""From the options of ``perflab load`` to a workload; every problem is told at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perflab.errors import ParameterError, TargetRefused
from perflab.load.objective_words import objectives
from perflab.load.options import Options
from perflab.load.prepared import Prepared
from perflab.load.record_place import file_problems, folder_problems
from perflab.load.requested import connections, request
from perflab.load.targets import refuse_foreign, split
from perflab.load.users import find
from perflab.load.workload import Workload
from perflab.parameters import parse_assignments

DEFAULT_DURATION_S = 10.0
DEFAULT_PROBE_S = 3.0
HIGHEST_RATE = 200_000.0
HIGHEST_USERS = 20_000
STAGE = re.compile(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?:(\d+(?:\.\d+)?)s?")


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
        "arrivals": _arrivals(options),
        "connections": connections(options),
        "timeout_s": options.timeout,
        "client": options.client,
        "verify_tls": not options.insecure,
        # The workers run elsewhere: a relative path would be another file to them.
        "ca_file": str(Path(options.ca_file).resolve()) if options.ca_file else "",
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
    if options.ca_file and not Path(options.ca_file).is_file():
        problems.append(f"--ca-file {options.ca_file}: no such file")
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


def _arrivals(options: Options) -> Mapping[str, Any]:
    problems = options.problems
    if options.script:
        return _scripted(options)
    kinds = {
        "--users": options.users,
        "--rate": options.rate,
        "--stages": options.stages,
        "--user-stages": options.user_stages,
        "--burst": options.burst,
    }
    given = [name for name, value in kinds.items() if value]
    if len(given) != 1:
        problems.append(
            f"give one of {', '.join(kinds)}" + (f", not {' and '.join(given)}" if given else "")
        )
        return {}
    if options.arrivals not in ("constant", "poisson"):
        problems.append(f"--arrivals '{options.arrivals}' is not constant or poisson")
    if options.arrivals == "poisson" and not (options.rate or options.stages):
        problems.append("--arrivals poisson needs --rate or --stages")
    if not options.users:
        for name in ("think_time", "pacing", "ramp"):
            if getattr(options, name) and not (options.user_stages and name != "ramp"):
                problems.append(f"--{name.replace('_', '-')} needs --users")
    if options.user_stages:
        return _users_in_stages(options)
    duration = options.duration or (0.0 if options.requests else DEFAULT_DURATION_S)
    if options.users:
        bound_s = duration + options.warmup if duration else 3_600.0
        return {
            "kind": "closed",
            "users": options.users,
            "requests": options.requests,
            "duration_s": duration,
            "warmup_s": options.warmup,
            "think_time_s": options.think_time,
            "pacing_s": options.pacing,
            "ramp_s": options.ramp,
            "max_duration_s": bound_s,
        }
    if options.burst:
        _refuse(options, "burst", ("requests", "duration", "warmup"), "all are sent at one instant")
        return {"kind": "burst", "size": options.burst}
    if options.stages:
        _refuse(options, "stages", ("duration",), "the stages decide")
    stages = _stages("--stages", "rate", options.stages, problems) if options.stages else []
    if options.rate:
        stages = [{"rate": options.rate, "duration_s": _length_s(options) + options.warmup}]
    return {
        "kind": "open",
        "stages": stages,
        "arrivals": options.arrivals,
        "seed": options.seed,
        "requests": options.requests,
        "warmup_s": options.warmup,
    }


def _length_s(options: Options) -> float:
    """Return how long an open loop of one rate lasts: by its time, its count, or the shorter."""
    if not options.requests:
        return options.duration or DEFAULT_DURATION_S
    needed_s = options.requests / options.rate
    if options.arrivals == "poisson":
        # A random process may need longer for its requests; the count then ends it.
        needed_s += (10 * options.requests**0.5 + 10) / options.rate
    return min(options.duration or needed_s, needed_s)


def _refuse(options: Options, chosen: str, others: Sequence[str], why: str) -> None:
    """Refuse options that the chosen arrivals would leave unused."""
    for name in others:
        if getattr(options, name):
            shown = name.replace("_", "-")
            options.problems.append(f"--{shown} does not go with --{chosen}: {why}")


def _scripted(options: Options) -> Mapping[str, Any]:
    if not options.users:
        options.problems.append("--script needs --users")
        return {}
    others = ("requests", "think_time", "pacing", "rate", "stages", "user_stages", "burst")
    _refuse(options, "script", others, "the script decides")
    place, colon, name = options.script.rpartition(":")
    # The workers run elsewhere: a file is found from here.
    script = f"{Path(place).resolve()}{colon}{name}" if place.endswith(".py") else options.script
    parameters: dict[str, Any] = {}
    try:
        find(script)
        parameters = parse_assignments(options.script_parameters)
    except ParameterError as error:
        options.problems.extend(error.problems)
    return {
        "kind": "scripted",
        "script": script,
        "users": options.users,
        "duration_s": options.duration or DEFAULT_DURATION_S,
        "warmup_s": options.warmup,
        "join_s": options.ramp / options.users,
        "seed": options.seed,
        "parameters": parameters,
    }


def _users_in_stages(options: Options) -> Mapping[str, Any]:
    stages = _stages("--user-stages", "users", options.user_stages, options.problems)
    _refuse(options, "user-stages", ("requests", "duration"), "the stages decide")
    length_s = sum(stage["duration_s"] for stage in stages)
    return {
        "kind": "closed",
        "users": max((max(s["users"], s.get("to_users", 0)) for s in stages), default=0),
        "duration_s": length_s - options.warmup,
        "warmup_s": options.warmup,
        "think_time_s": options.think_time,
        "pacing_s": options.pacing,
        "stages": stages,
        "max_duration_s": length_s or 1.0,
    }


def _stages(option: str, what: str, text: str, problems: list[str]) -> list[dict[str, float]]:
    """Read ``100:10,100-500:30``: a level, or from one to another, and seconds."""
    stages = []
    for part in text.split(","):
        match = STAGE.fullmatch(part.strip())
        if match is None:
            problems.append(
                f"{option} '{part}' is not {what.upper()}:SECONDS or FROM-TO:SECONDS, "
                "like 100:10,100-500:30"
            )
            continue
        start, end, duration = match.groups()
        stage = {what: float(start), "duration_s": float(duration)}
        stages.append(stage | ({f"to_{what}": float(end)} if end else {}))
    return stages


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
