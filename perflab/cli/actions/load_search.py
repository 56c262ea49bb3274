"""The search of ``perflab load --find-capacity``: each step it takes, and the limit it finds."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Any

import typer

from perflab.cli.load_status import Status
from perflab.load import capacity, once
from perflab.load.capacity import ProbeLoad
from perflab.load.options import LoadOptions
from perflab.load.records.record import place
from perflab.load.records.result import LoadResult
from perflab.load.workload import Workload
from perflab.statistics.quantiles import OF_LOADS

DEFAULT_PROBE_S = 3.0
# What each step of a search shows: latency against the load.
STEP_TIMES = ("p50", "p95", "p99")
HIGHEST_RATE = 200_000.0
HIGHEST_USERS = 20_000


def search_problems(
    options: LoadOptions, workload: Workload, outputs: Mapping[str, str]
) -> list[str]:
    """Return the options that a search lacks, and those that it cannot use."""
    known = ", ".join(f"p{share:g}" for share in OF_LOADS)
    texts = [
        f"--find-capacity judges {known}, not p{objective.percentile:g}"
        for objective in workload.objectives
        if objective.percentile not in OF_LOADS
    ]
    if not options.objectives:
        texts.append("--find-capacity needs an --objective, like 'p99<100ms'")
    if not (options.users or options.rate):
        texts.append("--find-capacity needs --users or --rate to begin with")
    unused = {
        **outputs, "--script": options.script, "--requests": options.requests,
        "--stop-after-failures": options.stop_after_failures,
    }  # fmt: skip
    return texts + [
        f"{flag} does not go with --find-capacity, which sends many loads"
        for flag, value in unused.items()
        if value
    ]


def search_capacity(
    workload: Workload, options: LoadOptions, workers: int, wait: float, as_json: bool
) -> None:
    """Search the highest level, print every probe, and print the limit."""
    length_s = options.duration_s or DEFAULT_PROBE_S
    by_users = options.users > 0
    what = "users" if by_users else "requests/s"
    print(f"each number of {what} is tried twice, and again if that disagrees", file=sys.stderr)

    with (
        place(None, workload) as here,
        once.interruptible() as check_stop,
        once.ready(workers, wait, check_stop) as generator,
    ):

        def send(load: Workload) -> LoadResult:
            result = generator.run(
                load, options.url, check=check_stop, allowed=options.allow_targets, folder=here.raw
            )
            if result.stopped:
                result.discard()
                raise KeyboardInterrupt
            return result

        targets = options.allow_targets
        checked = once.checked_answers(generator, workload, options.url, targets, check_stop)

        def probe(level: float) -> capacity.Probe:
            result = capacity.probed(
                send, workload, level, length_s, options.warmup_s or 0.2 * length_s, checked
            )
            state = "; ".join(map(str, result.faults or result.unclear or result.missed)) or "held"
            times_ms = {name: result.time_ms("response_time", name) for name in STEP_TIMES}
            known = [f"{name} {ms:.4g}" for name, ms in times_ms.items() if math.isfinite(ms)]
            shown = f"  {', '.join(known)} ms" if known else ""
            print(f"{level:12.5g}{shown}  {state}", file=sys.stderr, flush=True)
            return result

        highest = HIGHEST_USERS if by_users else HIGHEST_RATE
        limit = capacity.search(probe, options.users or options.rate, highest, whole=by_users)
    if as_json:
        shown = {"low": limit.low, "high": limit.high, "limit": limit.limit}
        probes = [
            {
                "level": item.level,
                "missed": item.missed,
                "faults": [reason.model_dump() for reason in item.faults],
                "unclear": [reason.model_dump() for reason in item.unclear],
                **(_as_json(item.load) if item.load else {}),
            }
            for item in limit.probes
        ]
        print(json.dumps({**shown, "sentence": limit.sentence, "probes": probes}))
    else:
        print(f"capacity in {what}: {limit.sentence}")
    if not limit.low:
        # No level held, because of the client or because every level missed the objective.
        raise typer.Exit(Status.MISSED if limit.limit == "server" else Status.INVALID)


def _as_json(load: ProbeLoad) -> dict[str, Any]:
    lengths = {"window_s": load.window_s, "warmup_s": load.warmup_s}
    paced = {"paced_rps": load.paced_rps} if load.paced_rps else {}
    return {**load.summary.model_dump(mode="json"), **lengths, **paced}
