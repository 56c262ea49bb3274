"""``perflab load --find-capacity``: the search, told probe by probe."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from perflab.cli.load_live import interruptible

if TYPE_CHECKING:
    from perflab.load.options import LoadOptions
    from perflab.load.result import LoadResult
    from perflab.load.workload import Workload


DEFAULT_PROBE_S = 3.0
HIGHEST_RATE = 200_000.0
HIGHEST_USERS = 20_000


def problems(asked: LoadOptions, made: Workload, outputs: Mapping[str, str]) -> list[str]:
    """Return what a search lacks, and what it would leave unused."""
    from perflab.percentiles import OF_LOADS

    known = ", ".join(f"p{share:g}" for share in OF_LOADS)
    found = [
        f"--find-capacity judges {known}, not p{each.percentile:g}"
        for each in made.objectives
        if each.percentile not in OF_LOADS
    ]
    if not asked.objectives:
        found.append("--find-capacity needs an --objective, like 'p99<100ms'")
    if not (asked.users or asked.rate):
        found.append("--find-capacity needs --users or --rate, where the search begins")
    unused = {**outputs, "--script": asked.script, "--requests": asked.requests}
    return found + [
        f"{flag} does not go with --find-capacity, which makes many loads"
        for flag, value in unused.items()
        if value
    ]


def search(made: Workload, asked: LoadOptions, workers: int, wait: float, as_json: bool) -> None:
    """Search the highest level, tell of every probe, and say where the limit lies."""
    from perflab.cli.load_live import Status
    from perflab.load import capacity, once
    from perflab.load.record_place import place

    length_s = asked.duration_s or DEFAULT_PROBE_S
    by_users = asked.users > 0

    with place(None, made) as here, once.ready(workers, wait) as generator, interruptible() as look:

        def sent(load: Workload) -> LoadResult:
            result = generator.run(
                load, asked.url, check=look, allowed=asked.allow_targets, folder=here.raw
            )
            if result.stopped:
                result.discard()
                raise KeyboardInterrupt
            return result

        def probe(level: float) -> capacity.Probe:
            found = capacity.probed(sent, made, level, length_s, asked.warmup_s or 0.2 * length_s)
            state = "; ".join(map(str, found.faults or found.unclear or found.missed)) or "held"
            print(f"{level:12.5g}  {state}", file=sys.stderr, flush=True)
            return found

        highest = HIGHEST_USERS if by_users else HIGHEST_RATE
        limit = capacity.search(probe, asked.users or asked.rate, highest, whole=by_users)
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
