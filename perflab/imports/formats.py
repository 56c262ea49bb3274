"""What can be taken over: every tool's formats, how each is recognised, and what it cannot tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import ImportRefused, ParameterError
from perflab.imports import ab, hey, k6, locust, oha, vegeta, wrk
from perflab.imports.reading import head_of, refused
from perflab.imports.told import Told
from perflab.parameters import did_you_mean

OMITS = (
    "Coordinated omission is not corrected: a request that waits for its turn counts from its "
    "sending."
)
# Outputs of the tools that hold too little, by how they begin, and what to import in their place.
ELSEWHERE = {
    r"Bucket +# +%": "vegeta's histogram has no percentiles; import vegeta report -type=json",
    r"Requests +\[total, rate": "this is vegeta's text; import vegeta report -type=json",
    r"Value\(ms\) +Percentile": "this is vegeta's hdrplot; import vegeta report -type=json",
    r"\d{19},\d+,\d+,": "this is vegeta's CSV; import vegeta encode -to json",
    r"[\s\S]{0,4000}(█ TOTAL RESULTS|http_req_duration\.{2,}:)": "this is what k6 prints; import "
    "the file of --out json=FILE or --summary-export FILE",
    r"[\s\S]{0,200}\bSuccess rate:\s": "this is oha's text; import that of --output-format json",
    r"request-start,DNS,": "this is oha's CSV; import what --output-format json writes",
    r"[\s\S]{0,200}\bValue +Percentile +TotalCount": "a spectrum alone does not say what was "
    "measured; import the whole text of wrk2 --latency",
    r"#\[(Histogram log|StartTime)": "this is a log of HdrHistogram; import what the tool prints",
}


@dataclass(frozen=True)
class Format:
    """One format of a tool.

    ``reads`` takes the files of one load, mostly one. ``from_plan``: its times count from planned
    instants, so that they are response times; of all others they are service times. ``omission``
    says what the tool does about coordinated omission. ``can_be_corrected``: the tool counts from
    its plan when asked to, and the file does not say whether it was.
    """

    tool: str
    name: str
    fits: Callable[[str], bool]
    reads: Callable[[Sequence[Path]], Told]
    omission: str = OMITS
    from_plan: bool = False
    can_be_corrected: bool = False


def _single(read: Callable[[Path], Told]) -> Callable[[Sequence[Path]], Told]:
    def reads(paths: Sequence[Path]) -> Told:
        (path,) = paths
        return read(path)

    return reads


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
_WRK2 = "Corrected: wrk2 counts from the instant at which its constant rate (-R) planned a request."
_VEGETA = (
    "vegeta sends at a planned rate and counts from the sending: with workers enough the two are "
    "near, and the file does not say how near."
)
FORMATS = (
    Format("k6", "JSON lines", k6.fits_points, _single(k6.read_points), _K6),
    Format("k6", "summary", k6.fits_summary, _single(k6.read_summary), _K6),
    Format("locust", "CSV", locust.fits_csv, locust.read_csv),
    Format("oha", "JSON", oha.fits_json, _single(oha.read_json), _OHA, can_be_corrected=True),
    Format("wrk2", "text", wrk.fits_wrk2, _single(wrk.read_wrk2), _WRK2, from_plan=True),
    Format("wrk", "text", wrk.fits_wrk, _single(wrk.read_wrk), _WRK),
    Format("ab", "text", ab.fits_text, _single(ab.read_text)),
    Format("ab", "percentiles", ab.fits_percentiles, _single(ab.read_percentiles)),
    Format("ab", "requests", ab.fits_requests, _single(ab.read_requests)),
    Format("hey", "text", hey.fits_text, _single(hey.read_text)),
    Format("hey", "requests", hey.fits_csv, _single(hey.read_csv)),
    Format("vegeta", "report", vegeta.fits_report, _single(vegeta.read_report), _VEGETA),
    Format("vegeta", "requests", vegeta.fits_results, _single(vegeta.read_results), _VEGETA),
)
TOOLS = tuple(dict.fromkeys(each.tool for each in FORMATS))


def check_tool(tool: str) -> None:
    """Refuse a tool that there is no format of.

    Raises
    ------
    ParameterError
        Names the nearest, and all that there are.
    """
    if tool and tool not in TOOLS:
        hint = did_you_mean(tool, TOOLS)
        raise ParameterError("--tool", [f"no tool '{tool}'{hint}; there are: {', '.join(TOOLS)}"])


def format_of(path: Path, tool: str = "") -> Format:
    """Return the format that a file begins as, of one tool where that is given.

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
