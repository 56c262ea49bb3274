"""What can be taken over of each tool, how it is recognised, and what it cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perflab.imports import ab, k6, locust, oha, wrk
from perflab.imports.reading import refused
from perflab.imports.told import Told

_SENT = (
    "Coordinated omission is not corrected: a request that waits for its turn counts from its "
    "sending."
)
_K6 = (
    "Coordinated omission is not corrected: times count from the sending, also where an arrival "
    "rate planned the iterations; those that it could not start are dropped_iterations."
)
_OHA = (
    "oha counts from its plan with -q and --latency-correction only, and its JSON does not say "
    "whether it did: what is called a service time here may be one from the plan on."
)
_WRK = (
    "wrk corrects by a guess: for a time that is much longer than its mean interval between "
    "requests it adds made-up shorter ones. Its times count from the sending all the same."
)


@dataclass(frozen=True)
class Format:
    """The output of a tool; ``omission`` says what it does about coordinated omission."""

    tool: str
    name: str
    fits: Callable[[str], bool]
    read: Callable[[Path, str], Told]
    omission: str = _SENT


FORMATS = (
    Format("k6", "summary", k6.fits, k6.read, _K6),
    Format("locust", "CSV", locust.fits, locust.read),
    Format("oha", "JSON", oha.fits, oha.read, _OHA),
    Format("wrk", "text", wrk.fits, wrk.read, _WRK),
    Format("ab", "text", ab.fits, ab.read),
)


def format_of(path: Path, text: str) -> Format:
    """Return the format that a file begins as; raises ImportRefused where it is none of them."""
    for form in FORMATS:
        if form.fits(text):
            return form
    tools = ", ".join(each.tool for each in FORMATS)
    said = f"it is no output of {tools} that can be taken over"
    raise refused(path, 1, f"{said}; docs/import.md says which of their outputs can")
