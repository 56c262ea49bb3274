"""Objectives as they are written: ``p99<1000ms/5s``, and of streams ``ttft_p95<500ms``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perflab.load.options import Options
from perflab.load.workload import Objective

WORDS = re.compile(
    r"(?:(ttft|gap)_)?p(\d+(?:\.\d+)?)\s*<=?\s*(\d+(?:\.\d+)?)\s*(ms|s)?(?:/(\d+(?:\.\d+)?)s?)?"
)
LIKE = "'p99<1000ms', 'p95<500ms/5s', or of streams 'ttft_p95<500ms', 'gap_p99<100ms'"


def objective(text: str) -> Objective:
    """Return the objective that a text names.

    Raises
    ------
    ValueError
        It names none, and says how one looks.
    """
    match = WORDS.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not like {LIKE}")
    of, percentile, bound, unit, window = match.groups()
    if of and window:
        raise ValueError(
            f"'{text}': times of streams are judged over the whole load; leave /{window}s out"
        )
    if not 0 < float(percentile) <= 100 or not float(bound):
        raise ValueError(f"'{text}': percentiles are above 0 and at most 100, times above 0")
    return Objective(
        of=of or "response",
        percentile=float(percentile),
        below_ms=float(bound) * (1000.0 if unit == "s" else 1.0),
        **({"window_s": float(window)} if window else {}),
    )


def objectives(options: Options) -> list[Objective]:
    """Return the objectives of a command; what is wrong with them goes to its problems."""
    found = []
    for text in options.objectives:
        try:
            found.append(objective(text))
        except ValueError as error:
            options.problems.append(f"--objective {error}")
    options.problems.extend(_not_streamed(found, options))
    return found


def _not_streamed(asked: Sequence[Objective], options: Options) -> list[str]:
    """Return that objectives are about streams, and nothing is streamed."""
    if options.stream or options.script:
        return []
    return [
        f"--objective {each.text}: only streams have that time; give --stream sse or ndjson"
        for each in asked
        if each.of != "response"
    ]
