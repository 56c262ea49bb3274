"""What can be taken over of each tool, how it is recognised, and what it cannot tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import ImportRefused, ParameterError
from perflab.imports import ab, k6, locust, oha, wrk
from perflab.imports.reading import head_of, refused
from perflab.imports.told import Told
from perflab.parameters import did_you_mean

# Outputs of tools that are not taken, by how they begin, and what to import in their place.
ELSEWHERE = {
    r"[\s\S]{0,4000}(█ TOTAL RESULTS|http_req_duration\.{2,}:)": "this is what k6 prints; import "
    "the file of --summary-export FILE",
    r'\{.*"type" *: *"(Metric|Point)"': "these are k6's requests; import the file of "
    "--summary-export FILE",
    r"[\s\S]{0,200}\bSuccess rate:\s": "this is oha's text; import that of --output-format json",
    r"request-start,DNS,": "this is oha's CSV; import what --output-format json writes",
    r"(Percentage served,|starttime\t)": "this is a file of ab -e or -g; import what ab prints",
    r"(Timestamp,User Count,|Method,Name,Error,)": "import Locust's file of statistics, "
    "PREFIX_stats.csv",
    rf"{wrk.BEGIN}[\s\S]*({wrk.OF_WRK2.pattern})": "this is wrk2's text; only wrk's is taken",
}


@dataclass(frozen=True)
class Format:
    """The output of a tool.

    ``omission`` says what the tool does about coordinated omission. ``can_be_corrected``: the tool
    counts from its plan when asked to, so that its times are response times, and the file does not
    say whether it was; otherwise they are service times.
    """

    tool: str
    name: str
    fits: Callable[[str], bool]
    reads: Callable[[Path], Told]
    omission: str = (
        "Coordinated omission is not corrected: a request that waits for its turn counts from its "
        "sending."
    )
    can_be_corrected: bool = False


_K6 = (
    "Coordinated omission is not corrected: times count from the sending, also where an arrival "
    "rate planned the iterations; those that it could not start are dropped_iterations."
)
_OHA = (
    "oha counts from its plan with -q and --latency-correction only, and its JSON does not say "
    "whether it did (--corrected does)."
)
_WRK = (
    "wrk corrects by a guess: for a time that is much longer than its mean interval between "
    "requests it adds made-up shorter ones. Its times count from the sending all the same."
)
FORMATS = (
    Format("k6", "summary", k6.fits, k6.read, _K6),
    Format("locust", "CSV", locust.fits, locust.read),
    Format("oha", "JSON", oha.fits, oha.read, _OHA, can_be_corrected=True),
    Format("wrk", "text", wrk.fits, wrk.read, _WRK),
    Format("ab", "text", ab.fits, ab.read),
)
TOOLS = tuple(each.tool for each in FORMATS)


def check_tool(tool: str) -> None:
    """Refuse a tool of which nothing can be taken over.

    Raises
    ------
    ParameterError
        Names the nearest, and all that there are.
    """
    if tool and tool not in TOOLS:
        hint = did_you_mean(tool, TOOLS)
        raise ParameterError("--tool", [f"no tool '{tool}'{hint}; there are: {', '.join(TOOLS)}"])


def format_of(path: Path, tool: str = "") -> Format:
    """Return the format that a file begins as; ``tool`` says which it must be.

    Raises
    ------
    ImportRefused
        It begins as none of them, or as another tool's.
    """
    head = head_of(path)
    found = next((each for each in FORMATS if each.fits(head)), None)
    if found is None:
        raise refused(path, 1, _unknown(head, tool))
    if tool and found.tool != tool:
        raise refused(path, 1, f"it looks like {found.tool}'s {found.name}, not {tool}'s")
    return found


def _unknown(head: str, tool: str) -> str:
    for begin, way_out in ELSEWHERE.items():
        if re.match(begin, head.lstrip()):
            return way_out
    tools = tool or ", ".join(TOOLS)
    return f"it is no output of {tools} that can be taken over (docs/import.md lists them)"


def common_format(paths: Sequence[Path], tool: str = "") -> Format:
    """Return the one format of all files.

    Raises
    ------
    ImportRefused
        They have several: their numbers would not mean the same.
    """
    first, *others = [(path, format_of(path, tool)) for path in paths]
    for path, found in others:
        if found is not first[1]:
            here, there = (f"{each.tool}'s {each.name}" for each in (found, first[1]))
            raise ImportRefused(
                f"{path}: it is {here}, and {first[0]} is {there}; what is compared must be told "
                "in the same way: import them one by one"
            )
    return first[1]
