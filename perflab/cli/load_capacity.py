"""``perflab load --find-capacity``: the search, told probe by probe."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import typer

from perflab.cli.load_live import interruptible
from perflab.errors import ParameterError

if TYPE_CHECKING:
    from perflab.load.options import Options
    from perflab.load.result import LoadResult
    from perflab.load.workload import Workload


def check(options: Options) -> None:
    """Note what a search lacks, and what it would leave unused."""
    problems = options.problems
    if not options.objectives:
        problems.append("--find-capacity needs an --objective, like 'p99<100ms'")
    if not (options.users or options.rate):
        problems.append("--find-capacity needs --users or --rate, where the search begins")
    for name in ("out", "csv", "script", "requests"):
        if getattr(options, name):
            problems.append(f"--{name} does not go with --find-capacity, which makes many loads")


def search(made: Workload, options: Options, workers: int, wait: float, as_json: bool) -> None:
    """Search the highest level, tell of every probe, and say where the limit lies."""
    from perflab.load import capacity, once, probing
    from perflab.load.record_place import place
    from perflab.load.requested_arrivals import DEFAULT_PROBE_S, HIGHEST_RATE, HIGHEST_USERS
    from perflab.load.status import Status
    from perflab.percentiles import OF_LOADS

    for objective in made.stop.objectives:
        if objective.percentile not in OF_LOADS:
            known = ", ".join(f"p{share:g}" for share in OF_LOADS)
            text = f"--find-capacity judges {known}, not p{objective.percentile:g}"
            raise ParameterError("perflab load", [text])
    length_s = options.duration or DEFAULT_PROBE_S
    by_users = options.users > 0

    with (
        place(None, made) as here,
        once.ready(workers, wait) as generator,
        interruptible() as look,
    ):

        def sent(load: Workload) -> LoadResult:
            result = generator.run(
                load, options.url, check=look, allowed=options.allow_targets, folder=here.raw
            )
            if result.stopped:
                result.discard()
                raise KeyboardInterrupt
            return result

        def probe(level: float) -> capacity.Probe:
            found = probing.probed(sent, made, level, length_s, options.warmup or 0.2 * length_s)
            state = "; ".join(map(str, found.faults or found.unclear or found.missed)) or "held"
            print(f"{level:12.5g}  {state}", file=sys.stderr, flush=True)
            return found

        limit = capacity.search(
            probe,
            options.users or options.rate,
            HIGHEST_USERS if by_users else HIGHEST_RATE,
            whole=by_users,
        )
    if as_json:
        shown = {"low": limit.low, "high": limit.high, "limit": limit.limit}
        probes = [
            {
                "level": item.level,
                "missed": item.missed,
                "faults": [each.model_dump() for each in item.faults],
                "unclear": [each.model_dump() for each in item.unclear],
                **item.shown,
            }
            for item in limit.probes
        ]
        print(json.dumps({**shown, "sentence": limit.sentence, "probes": probes}))
    else:
        print(f"capacity in {'users' if by_users else 'requests/s'}: {limit.sentence}")
    if not limit.low:
        # No level held: by the client's fault, or because every level missed the objective.
        raise typer.Exit(Status.MISSED if limit.limit == "server" else Status.INVALID)
