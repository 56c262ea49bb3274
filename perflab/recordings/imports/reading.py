"""Reads the texts and JSON of other tools, with bounds; errors name file and line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.errors import ImportRefused, RecordingError
from perflab.recordings import Reason, Remark, Response
from perflab.recordings.files import read_plain
from perflab.statistics.quantiles import needed_n

LARGEST_BYTES = 16 * 2**20
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_TIME = re.compile(r"(\S*?)\s*(us|ms|s|m|h)", re.ASCII)
_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3, "h": 3.6e6}


def refused(path: Path, line: int, text: str) -> ImportRefused:
    """Return the error for a file; ``line`` is 0 where it is not known."""
    return ImportRefused(f"{path}{f', line {line}' if line else ''}: {text}")


def bytes_of(path: Path) -> bytes:
    """Return a whole file; raises ImportRefused where it is unreadable, empty, or too large."""
    try:
        content = read_plain(path, LARGEST_BYTES)
    except RecordingError as error:
        raise refused(path, 0, str(error)) from None
    except OSError as error:
        raise refused(path, 0, error.strerror or str(error)) from None
    if not content.strip():
        raise refused(path, 0, "it is empty; did the tool end in an error?")
    return content


def text_of(path: Path, content: bytes) -> str:
    """Return a file's content as text; raises ImportRefused where it is no UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        way_out = "unpack it, or save it as UTF-8"
        raise refused(path, line, f"it is not UTF-8 ({error.reason}): {way_out}") from None


def number(text: str) -> float:
    """Return a finite number; raises ValueError, which explains a comma."""
    plain = text.strip()
    if not _NUMBER.fullmatch(plain):
        hint = ""
        if "," in plain:
            hint = "; the tool wrote commas for its locale: run it with LC_ALL=C"
        raise ValueError(f"{plain[:40]!r} is no number{hint}")
    value = float(plain)
    if not math.isfinite(value):
        raise ValueError(f"{plain[:40]!r} is too large")
    return value


def time_ms(text: str) -> float:
    """Return a time of at least 0 with its unit (``1.23ms``, ``12us``, ``1.00m``) in ms.

    ``-nanus`` gives NaN; other texts raise ValueError.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text.strip()[:40]!r} is no time with a unit (us, ms, s, m, h)")
    if match[1] in ("nan", "-nan"):
        return math.nan
    value = number(match[1]) * _MS[match[2]]
    if value < 0:
        raise ValueError(f"{text.strip()[:40]!r} is below 0")
    return value


class Report:
    """The lines of a text report of one load, whose first line fits ``begin``.

    Every method raises ImportRefused, which names the line, where a value is missing or wrong.
    """

    def __init__(self, path: Path, text: str, begin: str) -> None:
        self.path = path
        self._lines = text.splitlines()
        begins = [line for line, _ in self.all(begin)]
        if not begins:
            raise refused(path, 1, "it does not begin as a report of this tool")
        if len(begins) > 1:
            way_out = "save each in a file of its own"
            raise refused(path, begins[1], f"a second report begins here; {way_out}")

    def all(self, pattern: str, after: str = "") -> Iterator[tuple[int, re.Match[str]]]:
        """Yield number and match of the whole lines that fit a pattern.

        With ``after`` the search begins below the first line that fits it, and ends at an empty
        line after a match.
        """
        compiled, matched = re.compile(pattern), False
        begun = not after
        for line, text in enumerate(self._lines, 1):
            if not begun:
                begun = re.fullmatch(after, text) is not None
            elif match := compiled.fullmatch(text):
                matched = True
                yield line, match
            elif after and matched and not text.strip():
                return

    def first(self, pattern: str) -> re.Match[str] | None:
        """Return the match of the first whole line that fits a pattern."""
        return next((match for _, match in self.all(pattern)), None)

    def number(self, pattern: str, what: str, kind: Callable[[str], float] = number) -> float:
        """Return the number (or time) in the first group of the first line that fits a pattern."""
        for line, match in self.all(pattern):
            return self.value(line, match[1], kind)
        problem = f"it ends without {what}; was the tool interrupted?"
        raise refused(self.path, len(self._lines), problem)

    def count(self, pattern: str, what: str) -> int:
        """Return a count, as :meth:`number` does."""
        return int(self.number(pattern, what, int))

    def count_or(self, pattern: str, otherwise: int) -> int:
        """Return a count; ``otherwise`` where the tool left it out."""
        return self.count(pattern, "") if self.first(pattern) else otherwise

    def value(self, line: int, text: str, kind: Callable[[str], float]) -> float:
        """Return the value of a text in a line."""
        try:
            return kind(text)
        except ValueError as error:
            raise refused(self.path, line, str(error)) from None


class Numbers:
    """The numbers in a tool's JSON, each by the names that lead to it.

    Every method raises ImportRefused, which names the place, where a value is wrong.
    """

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        try:
            self._document = json.loads(text)
        except json.JSONDecodeError as error:
            raise refused(path, error.lineno, f"it is no JSON, or cut off: {error.msg}") from None
        except (ValueError, RecursionError) as error:
            raise refused(path, 0, str(error)) from None
        if not isinstance(self._document, dict):
            raise refused(path, 1, "it is no JSON object")

    def inside(self, *names: str) -> Mapping[str, Any]:
        """Return the object at a place, or an empty one."""
        value = self._at(names)
        if not isinstance(value, Mapping | None):
            raise self._fault(names, "is no object")
        return value or {}

    def number(self, *names: str) -> float:
        """Return a number of at least 0, which must exist."""
        value = self.number_or_nan(*names)
        if math.isnan(value):
            raise self._fault(names, "is missing; is the file whole, and of this version?")
        return value

    def number_or_nan(self, *names: str) -> float:
        """Return a number of at least 0; NaN where the tool reports none."""
        raw = self._at(names)
        if raw is None:
            return math.nan
        if isinstance(raw, bool) or not isinstance(raw, (int, float)):
            raise self._fault(names, f"is no number: {str(raw)[:40]!r}")
        try:
            value = float(raw)
        except OverflowError:
            value = math.inf
        if not (value >= 0 and math.isfinite(value)):
            raise self._fault(names, f"is {value:g}, and must be finite and at least 0")
        return value

    def count(self, *names: str) -> int:
        """Return a count."""
        value = self.number(*names)
        if not value.is_integer():
            raise self._fault(names, f"is {value:g}, which is not a count")
        return int(value)

    def _at(self, names: tuple[str, ...]) -> Any:
        value: Any = self._document
        for name in names:
            if not isinstance(value, Mapping):
                raise self._fault(names, "is not where it should be")
            value = value.get(name)
            if value is None:
                return None
        return value

    def _fault(self, names: tuple[str, ...], text: str) -> Exception:
        return refused(self._path, 0, f"'{'.'.join(names)}' {text}")


# The prefix keeps these columns apart from the lab's own, which are other numbers.
PREFIX = "told"
SHARES = (50, 66, 75, 80, 90, 95, 98, 99, 99.9, 99.99, 99.999)
TYPICAL = ("mean", "p50", "p95", "p99")
UNKNOWN = -1


@dataclass(frozen=True)
class ToolResult:
    """The numbers of one load as a tool reports them; None and NaN are numbers that it lacks.

    ``times_ms`` are statistics of its times by name (``mean``, ``p50``, ``p99_9``, ``max``).
    """

    requests: int
    failures: int | None
    duration_s: float
    throughput_rps: float
    times_ms: Mapping[str, float]
    remarks: tuple[Remark, ...] = ()


def share_name(percent: float) -> str:
    """Return the name of a percentile (0 to 100) in columns: ``p99``, ``p99_9``."""
    return f"p{percent:.10g}".replace(".", "_")


def declared_responses(tool: str) -> list[Response]:
    """Return the responses of imported trials; each title names the tool."""
    source = f"(as {tool} tells it)"
    names = {"mean": "mean service time", "min": "shortest service time"}
    names |= {share_name(share): f"p{share:g} of the service time" for share in SHARES}
    names |= {"max": "longest service time"}
    throughput = Response(
        name=f"{PREFIX}_throughput_rps", title=f"throughput {source}", unit="requests/s",
        heading="told requests/s", noun="throughput", better="more", typical=True,
    )  # fmt: skip
    return [
        throughput,
        *(
            Response(
                name=f"{PREFIX}_service_{name}_ms", title=f"{title} {source}", unit="ms",
                heading=f"told service {name.replace('_', '.')} ms", noun="service time",
                better="less", typical=name in TYPICAL,
            )
            for name, title in names.items()
        ),
    ]  # fmt: skip


def result_columns(result: ToolResult) -> dict[str, Any]:
    """Return the columns of a load; NaN, or -1 for counts, is a number that the tool lacks."""
    times = {
        f"{PREFIX}_service_{name}_ms": result.times_ms.get(name, math.nan)
        for name in ("mean", "min", *map(share_name, SHARES), "max")
    }
    return {
        "requests": result.requests,
        "errors": UNKNOWN if result.failures is None else result.failures,
        "unsent": UNKNOWN,
        "capped": UNKNOWN,
        f"{PREFIX}_duration_s": result.duration_s,
        f"{PREFIX}_throughput_rps": result.throughput_rps,
        **times,
    }


def not_judged(tool: str) -> Reason:
    """Return why an imported trial is neither valid nor invalid."""
    text = (
        f"not judged: {tool} reports neither its own lag, stalls and CPU, nor facts of the machine"
    )
    return Reason(code="import.not_judged", side="unknown", text=text)


def remarks_of(result: ToolResult, tool: str) -> list[Remark]:
    """Return the remarks on a load's numbers."""
    text = f"{tool} has no planned instants: response time is not computed, times are service times"
    remarks = [*result.remarks, Remark(code="import.service_time", side="client", text=text)]
    shares = {share_name(share): share for share in SHARES}
    few = [
        f"p{shares[name]:g}"
        for name, value in result.times_ms.items()
        if name in shares and not math.isnan(value) and result.requests < needed_n(shares[name])
    ]
    if few:
        text = (
            f"{result.requests:,} requests are too few for {', '.join(few)}, which {tool} reports"
        )
        remarks.append(Remark(code="import.too_few", side="client", text=text))
    return remarks
