"""One load as one HTML page, whole in itself: no script, nothing from elsewhere."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perflab.figures.theme import applied
from perflab.host.facts import environment
from perflab.load.result import LoadResult
from perflab.percentiles import OF_LOADS, needed_n
from perflab.reports import load_curves, load_pictures
from perflab.reports.load_style import STYLE

ROWS = (
    ("response time", "response_time"), ("service time", "service_time"),
    ("first chunk", "first_chunk"), ("gap of chunks", "chunk_gap"),
    ("connection wait", "connection_wait"), ("generator lag", "generator_lag"),
)  # fmt: skip
COLUMNS = (*(f"p{share:g}" for share in OF_LOADS), "max")
NEEDED = {f"p{share:g}": needed_n(share) for share in OF_LOADS}
MASKED = "(left out)"
# Names of headers that hold what lets somebody in.
SECRET = re.compile(r"cookie|auth|token|secret|session|passw|credential|api-?key|csrf|xsrf", re.I)


def page_of_load(
    result: LoadResult, shown: Mapping[str, Any], url: str, command: Sequence[str]
) -> str:
    """Return the page of a load whose summary is ``shown``.

    ``command`` is what was typed; values of headers that may let somebody in are left
    out of it.
    """
    parts = [
        _verdict(shown), _counts(shown), _percentiles(shown), *_pictures(result),
        *_failures(shown), *_names(shown), _how(url, command), _machine(),
    ]  # fmt: skip
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>Load of {_text(url)}</title><style>{STYLE}</style></head>"
        f'<body><a class="skip" href="#numbers">to the numbers</a><header><h1>Load of '
        f"<code>{_text(url)}</code></h1></header><main>\n" + "\n".join(parts) + "\n</main></body>"
        "</html>\n"
    )


def masked(command: Sequence[str]) -> list[str]:
    """Return a command without the values of headers that let somebody in."""
    found: list[str] = []
    is_header = False
    for word in command:
        option, equals, value = word.partition("=")
        if is_header:
            found.append(_masked(word))
            is_header = False
        elif equals and option == "--header":
            found.append(f"{option}={_masked(value)}")
        elif word.startswith("-H") and len(word) > 2:
            found.append("-H" + _masked(word[2:]))
        else:
            found.append(word)
            is_header = word in ("--header", "-H")
    return found


def _masked(value: str) -> str:
    name, colon, _ = value.partition(":")
    return f"{name}: {MASKED}" if colon and SECRET.search(name) else value


def _text(given: object) -> str:
    return html.escape(str(given))


def _verdict(shown: Mapping[str, Any]) -> str:
    valid = shown["valid"]
    words = "Valid" if valid else "INVALID: these numbers may not be used"
    refused = {each["text"] for each in shown["reasons"]}
    notes = [each["text"] for each in shown["warnings"] if each["text"] not in refused]
    parts = [f'<section class="{"valid" if valid else "invalid"}"><h2>{words}</h2>']
    if valid:
        parts.append("<p>The client watched itself and found nothing that moves these numbers.</p>")
    parts += [_list([each["text"] for each in shown["reasons"]]), "</section>"]
    if notes:
        parts.append(f"<section><h2>What to know of them</h2>{_list(notes)}</section>")
    return "".join(parts)


def _list(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{_text(each)}</li>' for each in texts)}</ul>" if texts else ""


def _counts(shown: Mapping[str, Any]) -> str:
    facts = [
        ("requests", str(shown["requests"])),
        ("failed", str(shown["errors"])),
        ("seconds", f"{shown['duration_s']:.2f}"),
        ("successes/s", _number(shown["throughput_rps"])),
    ]
    if shown["offered_rps"]:
        facts.append(("offered/s", _number(shown["offered_rps"])))
    facts.append(("client CPU per request", f"{shown['client_cpu_us_per_request']:.1f} µs"))
    if "stop" in shown:
        stop = shown["stop"]
        facts.append((f"stopped at {stop['failures']} failures after", f"{stop['after_s']:.2f} s"))
    cells = "".join(f"<div><dt>{_text(a)}</dt><dd>{_text(b)}</dd></div>" for a, b in facts)
    return f'<section id="numbers"><h2>Numbers</h2><dl class="facts">{cells}</dl></section>'


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:,.1f}"


def _percentiles(shown: Mapping[str, Any]) -> str:
    rows = [
        [label, *(_cell(shown, key, name) for name in COLUMNS)]
        for label, key in ROWS
        if f"{key}_ms" in shown
    ]
    words = (
        "Response times count from the instant that a request was planned for. "
        f"{load_curves.supported(shown['requests'] - shown['errors'])}. n< says how many a "
        "percentile needs; ≥ is a bound, as requests were cut off; ~ holds too much of the "
        "client's own time."
    )
    return _section("Times in ms", _table(["", *COLUMNS], rows) + f"<p>{_text(words)}</p>")


def _cell(shown: Mapping[str, Any], key: str, name: str) -> str:
    at_least, own = (shown.get(f"{key}_{held}_ms", {}) for held in ("at_least", "client"))
    times = shown[f"{key}_ms"]
    if name not in times:
        return ""
    if name in at_least:
        return f"≥{at_least[name]:.1f}"
    if (value := times[name]) is not None:
        return f"{value:.3f}" + ("~" if name in own else "")
    return f"n<{NEEDED[name]}" if name in NEEDED else "-"


def _pictures(result: LoadResult) -> Iterator[str]:
    table, bins = load_curves.over_time(result), load_curves.distribution(result)
    if len(table):
        words = "A part of the load without a point has too few successes for that percentile."
        yield _picture("Response time over the load", load_pictures.response_times, table, words)
        words = "Failures are drawn where there were any."
        yield _picture("Throughput over the load", load_pictures.answers_per_second, table, words)
    if len(bins):
        words = "Bins of equal ratio: the scale of time is logarithmic."
        yield _picture("Response times", load_pictures.response_histogram, bins, words)


def _picture(title: str, draw: Any, table: Any, words: str) -> str:
    """Return a picture twice, for wide and for narrow screens, and the numbers it is drawn from."""
    drawn = []
    for kind, width_in in (("wide", load_pictures.WIDE_IN), ("narrow", load_pictures.NARROW_IN)):
        with applied():
            figure = draw(table, width_in)
        svg = load_pictures.as_svg(figure, f"{draw.__name__}-{kind}")
        drawn.append(f'<div class="{kind}" role="img" aria-label="{_text(title)}">{svg}</div>')
    rows = [[f"{value:.4g}" for value in row] for row in table.to_numpy(float)]
    rows = [["-" if cell == "nan" else cell for cell in row] for row in rows]
    numbers = _table([name.replace("_", " ") for name in table.columns], rows)
    return _section(
        title,
        f"<figure>{''.join(drawn)}<figcaption>{_text(words)}</figcaption></figure>"
        f"<details><summary>the numbers</summary>{numbers}</details>",
    )


def _failures(shown: Mapping[str, Any]) -> Iterator[str]:
    causes = shown["errors_by_cause"]
    if causes:
        rows = [
            [str(each["count"]), f"{each['error']} {each['status'] or ''}".strip(), each["first"]]
            for each in causes
        ]
        yield _section("Failures by cause", _table(["requests", "cause", "the first"], rows))
    else:
        yield _section("Failures by cause", "<p>No request failed.</p>")


def _names(shown: Mapping[str, Any]) -> Iterator[str]:
    if shown["by_name"]:
        rows = [
            [each["name"], str(each["requests"]), str(each["errors"])]
            + [_cell(each, "response_time", name) for name in ("p50", "p95", "p99", "max")]
            for each in shown["by_name"]
        ]
        names = ["name", "requests", "failed", "p50 ms", "p95 ms", "p99 ms", "max ms"]
        yield _section("By name", _table(names, rows))


def _how(url: str, command: Sequence[str]) -> str:
    typed = masked(command)
    note = "<p>Values that may let somebody in are left out.</p>" if typed != [*command] else ""
    words = _text(shlex.join(typed))
    return _section("Command", f'<pre tabindex="0">{words}</pre>{note}<p>To {_text(url)}.</p>')


def _machine() -> str:
    found = environment()
    machine = found["machine"]
    rows = [
        ["processor", f"{machine['cpu']}, {machine['cores']} cores"],
        ["memory", f"{machine['memory_bytes'] / 2**30:.1f} GiB"],
        ["system", found["system"]],
        ["clock governor, turbo", f"{found['governor']}, {found['turbo']}"],
        ["Python, perflab", f"{found['python']}, {found['packages'].get('perflab', 'unknown')}"],
    ]
    return _section("Machine of the client", _table([], rows))


def _section(title: str, content: str) -> str:
    return f"<section><h2>{_text(title)}</h2>{content}</section>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    heads = "".join(f'<th scope="col">{_text(each)}</th>' for each in head)
    top = f"<thead><tr>{heads}</tr></thead>" if head else ""
    lines = "".join(
        f'<tr><th scope="row">{_text(row[0])}</th>'
        + "".join(f"<td>{_text(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    # A wide table scrolls by itself, also by keyboard.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="table"><table>{top}'
        f"<tbody>{lines}</tbody></table></div>"
    )
