"""From the options of ``perflab load`` to its arrivals; problems are collected."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perflab.errors import ParameterError
from perflab.load.options import Options
from perflab.load.script_class import find
from perflab.parameters import parse_assignments

DEFAULT_DURATION_S = 10.0
DEFAULT_PROBE_S = 3.0
HIGHEST_RATE = 200_000.0
HIGHEST_USERS = 20_000
STAGE = re.compile(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?:(\d+(?:\.\d+)?)s?")


def arrivals(options: Options) -> Mapping[str, Any]:
    """Return the arrivals that options describe, as data."""
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
