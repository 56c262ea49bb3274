"""The summary of a load for people: text of 80 columns, and a notebook's cell."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perflab.display import escaped
from perflab.load.failure_causes import Cause, in_words
from perflab.percentiles import OF_LOADS, needed_n

WIDTH = 80
LONGEST_NAME = 20
MOST_CAUSES = 10
COLUMNS = (*(f"p{share:g}" for share in OF_LOADS), "max")
NEEDED = {f"p{share:g}": needed_n(share) for share in OF_LOADS}
VALID, INVALID = "#2e7d32", "#c0392b"


def table(shown: Mapping[str, Any]) -> str:
    """Return a summary (see ``report.summary``) as text."""
    parts = [_counts(shown), _times(shown), _names(shown["by_name"]), _verdict(shown)]
    return "\n\n".join("\n".join(lines) for part in parts if (lines := list(part)))


def _counts(shown: Mapping[str, Any]) -> Iterator[str]:
    offered = f" (offered {shown['offered_rps']:.1f}/s)" if shown["offered_rps"] else ""
    yield from _wrapped(
        f"{shown['requests']} requests in {shown['duration_s']:.2f} s, "
        f"{shown['throughput_rps'] or 0:.1f} successes/s{offered}, "
        f"{_bytes(shown['bytes_per_s'] or 0)}/s received"
    )
    if "chunks" in shown:
        yield from _wrapped(
            f"{shown['chunks']} chunks of streams, {shown['chunks_per_s'] or 0:.1f} chunks/s"
        )
    if "stop" in shown:
        yield from _stop(shown["stop"])
        return
    causes = [Cause(**words) for words in shown["errors_by_cause"]]
    if len(causes) < 2:
        text = ", ".join(cause.text for cause in causes)
        yield from _wrapped(f"{shown['errors']} errors" + (f": {text}" if text else ""))
        return
    yield f"{shown['errors']} errors:"
    for cause in causes[:MOST_CAUSES]:
        yield from _wrapped(cause.text, "  ")
    if len(causes) > MOST_CAUSES:
        yield f"  and {len(causes) - MOST_CAUSES} more causes"


def _stop(stop: Mapping[str, Any]) -> Iterator[str]:
    """Tell a load's end by failures, and what ended on both sides of it."""
    users = "" if stop["users"] is None else f" with {stop['users']} users active"
    yield from _wrapped(
        f"stopped at {stop['failures']} failures after {stop['after_s']:.2f} s{users}"
    )
    yield from _wrapped(f"until the stop: {_part(stop['until'])}", "  ")
    yield from _wrapped(
        f"after it, {stop['under_way']} having been under way: {_part(stop['after'])}", "  "
    )


def _part(part: Mapping[str, Any]) -> str:
    text = f"{part['successes']} successes, {part['failures']} failures"
    if part["given_up"]:
        text += f", {part['given_up']} given up"
    causes = in_words([Cause(**words) for words in part["causes"]])
    return text + (f" ({causes})" if causes else "")


def _times(shown: Mapping[str, Any]) -> Iterator[str]:
    yield f"{'ms':16}" + "".join(f"{name:>10}" for name in COLUMNS)
    for label, key in (
        ("response time", "response_time"),
        ("service time", "service_time"),
        ("first chunk", "first_chunk"),
        ("gap of chunks", "chunk_gap"),
        ("connection wait", "connection_wait"),
        ("generator lag", "generator_lag"),
    ):
        if f"{key}_ms" in shown:
            cells = (_cell(shown, key, name) for name in COLUMNS)
            yield (f"{label:16}" + "".join(cells)).rstrip()


def _names(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not rows:
        return
    yield f"{'name':{LONGEST_NAME}}{'requests':>10}{'errors':>8}{'/s':>10}" + "".join(
        f"{name:>10}" for name in ("p50 ms", "p99 ms", "max ms")
    )
    for row in rows:
        name = row["name"]
        if len(name) > LONGEST_NAME:
            yield from _wrapped(name)
            name = ""
        cells = "".join(_cell(row, "response_time", column) for column in ("p50", "p99", "max"))
        rate = f"{row['throughput_rps'] or 0:.1f}"
        yield f"{name:{LONGEST_NAME}}{row['requests']:>10}{row['errors']:>8}{rate:>10}{cells}"


def _verdict(shown: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"client: {shown['client_cpu_us_per_request']:.1f} us of CPU per request, "
        f"{shown['client_cpu_share']:.0%} of its cores"
    )
    yield "valid" if shown["valid"] else "INVALID: these numbers may not be used"
    for each in shown["warnings"]:
        yield from _wrapped(each["text"], "  - ")


def _cell(shown: Mapping[str, Any], key: str, name: str) -> str:
    """Return a time: ``>=`` where it is a bound, ``~`` where too much of it may be the client's."""
    times: Mapping[str, float | None] = shown[f"{key}_ms"]
    at_least, client = (shown.get(f"{key}_{held}_ms", {}) for held in ("at_least", "client"))
    if name not in times:
        text = ""
    elif name in at_least:
        text = f">={at_least[name]:.{0 if at_least[name] >= 100 else 1}f}"
    elif (value := times[name]) is not None:
        text = _ms(value) + ("~" if name in client else "")
    else:
        text = "n<" + str(NEEDED[name]) if name in NEEDED else "-"
    return f"{text:>10}"


def _ms(value: float) -> str:
    return f"{value:.3f}" if value < 10_000 else f"{value:.0f}"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _wrapped(text: str, begin: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=begin, subsequent_indent=" " * max(2, len(begin))
    )


class LoadSummary(dict[str, Any]):
    """A summary (see ``report.summary``) that shows itself as ``perflab load`` prints it."""

    def _repr_html_(self) -> str:
        color = VALID if self["valid"] else INVALID
        style = f"border-left: 5px solid {color}; padding: 4px 8px; margin: 0;"
        # No <br> within <pre>: each would stand beside the end of its line.
        text = escaped(table(self)).replace("<br>", "\n")
        return f'<pre style="{style}">{text}</pre>'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002
        # IPython's word for plain text; ``print`` and ``repr`` are those of any dict.
        printer.text(table(self))
