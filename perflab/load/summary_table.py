"""The summary of a load as text, for a terminal and a notebook."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from perflab.load.checks.failures import AroundStop, Part, in_words
from perflab.load.summary import LoadSummary, NameSummary, TimesMs
from perflab.recordings.display import escaped
from perflab.statistics.in_words import as_share, visible
from perflab.statistics.quantiles import OF_LOADS, needed_n

WIDTH = 80
LONGEST_NAME = 20
MOST_CAUSES = 10
PERCENTILE_COLUMNS = (*(f"p{share:g}" for share in OF_LOADS), "max")
NEEDED = {f"p{share:g}": needed_n(share) for share in OF_LOADS}
VALID, INVALID = "#2e7d32", "#c0392b"


def table(summary: LoadSummary) -> str:
    """Return a summary as text; what makes it unusable stands first."""
    parts = [
        _invalid(summary), _counts(summary), _time_rows(summary), _names(summary.by_name),
        _remarks(summary),
    ]  # fmt: skip
    return "\n\n".join("\n".join(lines) for part in parts if (lines := list(part)))


def _counts(summary: LoadSummary) -> Iterator[str]:
    offered = f" (offered {summary.offered_rps:.1f}/s)" if summary.offered_rps else ""
    yield from _wrapped(
        f"{summary.requests:,} requests in {summary.duration_s:.2f} s, "
        f"{summary.throughput_rps or 0:.1f} successes/s{offered}, "
        f"{_bytes(summary.bytes_per_s or 0)}/s received"
    )
    if summary.chunks is not None:
        yield from _wrapped(
            f"{summary.chunks} chunks of streams, {summary.chunks_per_s or 0:.1f} chunks/s"
        )
    if summary.messages_received is not None:
        yield from _wrapped(
            f"{summary.messages_received} messages received, "
            f"{summary.messages_per_s or 0:.1f} messages/s; {summary.messages_sent} sent"
        )
    if summary.stop is not None:
        yield from _stop(summary.stop)
        return
    causes = in_words(summary.errors_by_cause, MOST_CAUSES)
    yield from _wrapped(f"{summary.errors} errors" + (f": {causes}" if causes else ""))


def _stop(stop: AroundStop) -> Iterator[str]:
    """Describe a load's end by failures, and the requests before and after it."""
    users = "" if stop.users is None else f" with {stop.users} users active"
    yield from _wrapped(f"stopped at {stop.failures} failures after {stop.after_s:.2f} s{users}")
    yield from _wrapped(f"until the stop: {_part(stop.until)}", "  ")
    after = f"after it, {stop.under_way} having been under way: {_part(stop.after)}"
    yield from _wrapped(after, "  ")


def _part(part: Part) -> str:
    text = f"{part.successes} successes, {part.failures} failures"
    if part.given_up:
        text += f", {part.given_up} given up"
    causes = in_words(part.causes)
    return text + (f" ({causes})" if causes else "")


def _time_rows(summary: LoadSummary) -> Iterator[str]:
    yield f"{'ms':16}" + "".join(f"{name:>10}" for name in PERCENTILE_COLUMNS)
    for label, times in (
        ("response time", summary.response_time),
        ("service time", summary.service_time),
        ("first chunk", summary.first_chunk),
        ("gap of chunks", summary.chunk_gap),
        ("message delay", summary.message_delay),
        ("connection wait", summary.connection_wait),
        ("generator lag", TimesMs(ms=summary.generator_lag_ms)),
    ):
        if times is not None:
            cells = (_cell(times, name) for name in PERCENTILE_COLUMNS)
            yield (f"{label:16}" + "".join(cells)).rstrip()


def _names(rows: Sequence[NameSummary]) -> Iterator[str]:
    from rich.cells import cell_len, set_cell_size

    if not rows:
        return
    yield f"{'name':{LONGEST_NAME}}{'requests':>10}{'errors':>8}{'/s':>10}" + "".join(
        f"{name:>10}" for name in ("p50 ms", "p99 ms", "max ms")
    )
    for row in rows:
        name = visible(row.name)
        if cell_len(name) > LONGEST_NAME:
            yield from _wrapped(name)
            name = ""
        cells = "".join(_cell(row.response_time, column) for column in ("p50", "p99", "max"))
        counts = f"{row.requests:>10}{row.errors:>8}{row.throughput_rps or 0:>10.1f}"
        yield f"{set_cell_size(name, LONGEST_NAME)}{counts}{cells}"


def _invalid(summary: LoadSummary) -> Iterator[str]:
    if not summary.valid:
        yield "INVALID: these numbers may not be used"
    for reason in summary.reasons:
        yield from _wrapped(reason.text, "  - ")


def _remarks(summary: LoadSummary) -> Iterator[str]:
    each = f"{summary.client_cpu_us_per_request:.1f} us of CPU per request, "
    cores = f"{as_share(summary.client_cpu_share)} of its cores"
    yield f"client: {each if summary.requests else ''}{cores}"
    if summary.valid:
        yield "valid"
    against = {reason.text for reason in summary.reasons}
    for warning in summary.warnings:
        if warning.text not in against:
            yield from _wrapped(warning.text, "  - ")


def _cell(times: TimesMs, name: str) -> str:
    """Return a time as text: ``>=`` marks a bound, ``~`` too much of the client's own time."""
    if name not in times.ms:
        text = ""
    elif (at_least := times.at_least_ms.get(name)) is not None:
        digits = 0 if at_least >= 100 else 1
        text = f">={math.floor(at_least * 10**digits) / 10**digits:.{digits}f}"
    elif (value := times.ms[name]) is not None:
        text = _ms(value) + ("~" if name in (times.client_ms or {}) else "")
    else:
        text = "n<" + str(NEEDED[name]) if name in NEEDED else "-"
    return f"{text:>10}"


def _ms(value: float) -> str:
    return f"{value:.3f}" if value < 10_000 else f"{value:.0f}"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        # From here on three digits would be 1e+03.
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=" " * max(2, len(indent))
    )


class ShownSummary(LoadSummary):
    """A summary that shows itself in a notebook as ``perflab load`` prints it."""

    def _repr_html_(self) -> str:
        color = VALID if self.valid else INVALID
        style = f"border-left: 5px solid {color}; padding: 4px 8px; margin: 0;"
        # Within <pre> a <br> would double the line end it stands beside.
        text = escaped(table(self)).replace("<br>", "\n")
        return f'<pre style="{style}">{text}</pre>'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002
        # IPython calls this for plain text; ``print`` and ``repr`` show all fields.
        printer.text(table(self))
