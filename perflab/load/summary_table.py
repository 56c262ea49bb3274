"""The summary of a load as text, for a terminal and a notebook."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perflab.load.checks.failures import Cause, in_words
from perflab.recordings.display import escaped
from perflab.statistics.in_words import as_share, visible
from perflab.statistics.quantiles import OF_LOADS, needed_n

WIDTH = 80
LONGEST_NAME = 20
MOST_CAUSES = 10
COLUMNS = (*(f"p{share:g}" for share in OF_LOADS), "max")
NEEDED = {f"p{share:g}": needed_n(share) for share in OF_LOADS}
VALID, INVALID = "#2e7d32", "#c0392b"


def table(shown: Mapping[str, Any]) -> str:
    """Return a summary (see ``report.summary``) as text; what makes it unusable stands first."""
    parts = [
        _invalid(shown), _counts(shown), _time_rows(shown), _names(shown["by_name"]),
        _remarks(shown),
    ]  # fmt: skip
    return "\n\n".join("\n".join(lines) for part in parts if (lines := list(part)))


def _counts(shown: Mapping[str, Any]) -> Iterator[str]:
    offered = f" (offered {shown['offered_rps']:.1f}/s)" if shown["offered_rps"] else ""
    yield from _wrapped(
        f"{shown['requests']} requests in {shown['duration_s']:.2f} s, "
        f"{shown['throughput_rps'] or 0:.1f} successes/s{offered}, "
        f"{_bytes(shown['bytes_per_s'] or 0)}/s received"
    )
    faults = {"decoding", "encoding"} & {cause["error"] for cause in shown["errors_by_cause"]}
    for encoding, counts in shown.get("packed", {}).items():
        yield from _wrapped(_packed(encoding, counts, bool(faults)))
    if "chunks" in shown:
        yield from _wrapped(
            f"{shown['chunks']} chunks of streams, {shown['chunks_per_s'] or 0:.1f} chunks/s"
        )
    if "messages_received" in shown:
        yield from _wrapped(
            f"{shown['messages_received']} messages received, "
            f"{shown['messages_per_s'] or 0:.1f} messages/s; {shown['messages_sent']} sent"
        )
    if "stop" in shown:
        yield from _stop(shown["stop"])
        return
    causes = in_words([Cause(**words) for words in shown["errors_by_cause"]], MOST_CAUSES)
    yield from _wrapped(f"{shown['errors']} errors" + (f": {causes}" if causes else ""))


def _packed(encoding: str, counts: Mapping[str, int], has_failed: bool) -> str:
    text = f"{counts['answers']} answers under {encoding}: {_bytes(counts['bytes'])} on the wire, "
    if not (unpacked := counts.get("unpacked", 0)):
        return text + ("not unpacked" if has_failed else "not unpacked, as nothing looks into them")
    each_us = counts["unpacking_ns"] / unpacked / 1e3
    which = "" if unpacked == counts["answers"] else f" from {unpacked} of them"
    return text + (
        f"{_bytes(counts['unpacked_bytes'])} unpacked{which}; unpacking took the client "
        f"{each_us:.1f} us each"
    )


def _stop(stop: Mapping[str, Any]) -> Iterator[str]:
    """Describe a load's end by failures, and the requests before and after it."""
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


def _time_rows(shown: Mapping[str, Any]) -> Iterator[str]:
    yield f"{'ms':16}" + "".join(f"{name:>10}" for name in COLUMNS)
    for label, key in (
        ("response time", "response_time"),
        ("service time", "service_time"),
        ("first chunk", "first_chunk"),
        ("gap of chunks", "chunk_gap"),
        ("message delay", "message_delay"),
        ("connection wait", "connection_wait"),
        ("generator lag", "generator_lag"),
    ):
        if f"{key}_ms" in shown:
            cells = (_cell(shown, key, name) for name in COLUMNS)
            yield (f"{label:16}" + "".join(cells)).rstrip()


def _names(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    from rich.cells import cell_len, set_cell_size

    if not rows:
        return
    yield f"{'name':{LONGEST_NAME}}{'requests':>10}{'errors':>8}{'/s':>10}" + "".join(
        f"{name:>10}" for name in ("p50 ms", "p99 ms", "max ms")
    )
    for row in rows:
        name = visible(row["name"])
        if cell_len(name) > LONGEST_NAME:
            yield from _wrapped(name)
            name = ""
        cells = "".join(_cell(row, "response_time", column) for column in ("p50", "p99", "max"))
        counts = f"{row['requests']:>10}{row['errors']:>8}{row['throughput_rps'] or 0:>10.1f}"
        yield f"{set_cell_size(name, LONGEST_NAME)}{counts}{cells}"


def _invalid(shown: Mapping[str, Any]) -> Iterator[str]:
    if not shown["valid"]:
        yield "INVALID: these numbers may not be used"
    for reason in shown["reasons"]:
        yield from _wrapped(reason["text"], "  - ")


def _remarks(shown: Mapping[str, Any]) -> Iterator[str]:
    each = f"{shown['client_cpu_us_per_request']:.1f} us of CPU per request, "
    cores = f"{as_share(shown['client_cpu_share'])} of its cores"
    yield f"client: {each if shown['requests'] else ''}{cores}"
    if shown["valid"]:
        yield "valid"
    for warning in shown["warnings"]:
        if warning not in shown["reasons"]:
            yield from _wrapped(warning["text"], "  - ")


def _cell(shown: Mapping[str, Any], key: str, name: str) -> str:
    """Return a time as text: ``>=`` marks a bound, ``~`` too much of the client's own time."""
    times: Mapping[str, float | None] = shown[f"{key}_ms"]
    at_least, client = (shown.get(f"{key}_{kind}_ms", {}) for kind in ("at_least", "client"))
    if name not in times:
        text = ""
    elif name in at_least:
        digits = 0 if at_least[name] >= 100 else 1
        text = f">={math.floor(at_least[name] * 10**digits) / 10**digits:.{digits}f}"
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


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=" " * max(2, len(indent))
    )


class LoadSummary(dict[str, Any]):
    """A summary (see ``report.summary``) that shows itself as ``perflab load`` prints it."""

    def _repr_html_(self) -> str:
        color = VALID if self["valid"] else INVALID
        style = f"border-left: 5px solid {color}; padding: 4px 8px; margin: 0;"
        # Within <pre> a <br> would double the line end it stands beside.
        text = escaped(table(self)).replace("<br>", "\n")
        return f'<pre style="{style}">{text}</pre>'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002
        # IPython calls this for plain text; ``print`` and ``repr`` are those of a dict.
        printer.text(table(self))
