"""One load as one HTML page, whole in itself: no script, nothing from elsewhere."""

from __future__ import annotations

import html
import io
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from perflab.figures.canvas import only_grid
from perflab.figures.theme import applied
from perflab.host.facts import environment
from perflab.load.result import LoadResult
from perflab.load.summary_table import table
from perflab.percentiles import needed_n, percentile

MASKED = "(left out)"
# Names of headers that hold what lets somebody in.
SECRET = re.compile(r"cookie|auth|token|secret|session|passw|credential|api-?key|csrf|xsrf", re.I)
LEAST_PARTS, MOST_PARTS = 10, 60
LEAST_PART_S = 0.1
SHARES = (50, 95, 99)
SIZE_IN = (8.2, 2.7)
STYLE = """
body { margin: 0 auto; padding: 1rem; max-width: 56rem; font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; }
.valid, .invalid { padding: 0 1rem; border-left: .4rem solid #007a5a; background: #e3f3e8; }
.invalid { border-color: #b80000; background: #fbe3e3; }
ul { padding-left: 1.2rem; overflow-wrap: anywhere; }
pre { overflow-x: auto; }
svg { width: 100%; height: auto; }
"""


def page_of_load(
    result: LoadResult, shown: Mapping[str, Any], url: str, command: Sequence[str]
) -> str:
    """Return the page of a load whose summary is ``shown``.

    ``command`` is what was typed; values of headers that may let somebody in are left
    out of it.
    """
    parts = [
        _verdict(shown),
        f'<section id="numbers"><h2>Numbers</h2><pre>{_text(table(shown))}</pre></section>',
        *_pictures(over_time(result)),
        _how(url, command),
        _machine(),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>Load of {_text(url)}</title><style>{STYLE}</style></head>"
        f"<body><h1>Load of <code>{_text(url)}</code></h1>\n" + "\n".join(parts) + "\n</body>"
        "</html>\n"
    )


def masked(command: Sequence[str]) -> list[str]:
    """Return a command without the values of headers that let somebody in."""
    found: list[str] = []
    follows = False
    for word in command:
        option, equals, value = word.partition("=")
        if follows:
            found.append(_masked(word))
        elif equals and option == "--header":
            found.append(f"{option}={_masked(value)}")
        elif word.startswith("-H") and len(word) > 2:
            found.append("-H" + _masked(word[2:]))
        else:
            found.append(word)
        follows = not follows and word in ("--header", "-H")
    return found


def _masked(header: str) -> str:
    name, colon, _ = header.partition(":")
    return f"{name}: {MASKED}" if colon and SECRET.search(name) else header


def over_time(result: LoadResult) -> pd.DataFrame:
    """Return a row for each part of the load's measured time.

    Columns: ``at_s`` and ``until_s`` since its begin, ``successes_per_s`` and ``failures_per_s`` by
    the end of requests, ``p50``, ``p95`` and ``p99`` (ms) of the successes that were planned in it;
    NaN where they are too few to have one.
    """
    begin_ns, end_ns = result.window
    length_s = (end_ns - begin_ns) / 1e9
    if length_s <= 0:
        return pd.DataFrame()
    planned, done, good = (
        result.measured(each)
        for each in (
            lambda rows: rows["planned_ns"],
            lambda rows: rows["done_ns"],
            lambda rows: rows["error"] == 0,
        )
    )
    # So few that each can have a p95, if there are enough requests for that.
    supported_parts = max(LEAST_PARTS, len(planned) // needed_n(95))
    parts = int(np.clip(length_s // LEAST_PART_S, 1, min(MOST_PARTS, supported_parts)))
    edges = np.linspace(begin_ns, end_ns, parts + 1)
    place = np.clip(np.searchsorted(edges, planned[good], "right") - 1, 0, parts - 1)
    spent_ms = (done - planned)[good] / 1e6
    pieces = [spent_ms[place == number] for number in range(parts)]
    return pd.DataFrame(
        {
            "at_s": (edges[:-1] - begin_ns) / 1e9,
            "until_s": (edges[1:] - begin_ns) / 1e9,
            "successes_per_s": np.histogram(done[good], edges)[0] / (length_s / parts),
            "failures_per_s": np.histogram(done[~good], edges)[0] / (length_s / parts),
            **{f"p{share}": [percentile(piece, share) for piece in pieces] for share in SHARES},
        }
    )


def _pictures(parts: pd.DataFrame) -> Iterator[str]:
    if not len(parts):
        return
    with applied():
        figure, axes = _blank("response time (ms)")
        middle_s = (parts["at_s"] + parts["until_s"]) / 2
        for share, dashes in zip(SHARES, ("solid", "dashed", "dotted"), strict=True):
            if parts[f"p{share}"].notna().any():
                axes.plot(middle_s, parts[f"p{share}"], ls=dashes, marker=".", label=f"p{share}")
    words = "A part of the load without a point has too few successes for that percentile."
    yield _picture("Response time over the load", figure, axes, words)
    with applied():
        figure, axes = _blank("per second")
        edges = [*parts["at_s"], parts["until_s"].iloc[-1]]
        axes.stairs(parts["successes_per_s"], edges, label="successes/s")
        if parts["failures_per_s"].any():
            axes.stairs(parts["failures_per_s"], edges, ls="dashed", label="failures/s")
    words = "Failures are drawn where there were any."
    yield _picture("Throughput over the load", figure, axes, words)


def _blank(unit: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE_IN, layout="constrained")
    axes = figure.add_subplot(xlabel="s since the measurement's begin", ylabel=unit)
    only_grid(axes, "y")
    return figure, axes


def _picture(title: str, figure: Figure, axes: Axes, words: str) -> str:
    axes.set_ylim(bottom=0)
    target = io.StringIO()
    with applied(**{"svg.fonttype": "none", "svg.hashsalt": title}):
        if len(axes.lines) + len(axes.patches) > 1:
            axes.legend()
        figure.savefig(target, format="svg", metadata={"Date": None})
    svg = target.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # Two pictures of one page have no id in common.
    prefix = title.split()[0]
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    return _section(title, f"<figure>{svg}<figcaption>{_text(words)}</figcaption></figure>")


def _verdict(shown: Mapping[str, Any]) -> str:
    valid = shown["valid"]
    words = "Valid" if valid else "INVALID: these numbers may not be used"
    texts = "".join(f"<li>{_text(each['text'])}</li>" for each in shown["reasons"])
    return (
        f'<section class="{"valid" if valid else "invalid"}"><h2>{words}</h2><ul>{texts}</ul>'
        "</section>"
    )


def _how(url: str, command: Sequence[str]) -> str:
    typed = masked(command)
    note = "<p>Values that may let somebody in are left out.</p>" if typed != [*command] else ""
    words = _text(shlex.join(typed))
    return _section("Command", f"<pre>{words}</pre>{note}<p>To {_text(url)}.</p>")


def _machine() -> str:
    found = environment()
    machine = found["machine"]
    facts = [
        f"processor: {machine['cpu']}, {machine['cores']} cores",
        f"memory: {machine['memory_bytes'] / 2**30:.1f} GiB",
        f"system: {found['system']}",
        f"clock governor, turbo: {found['governor']}, {found['turbo']}",
        f"Python {found['python']}, perflab {found['packages'].get('perflab', 'unknown')}",
    ]
    return _section("Machine of the client", f"<pre>{_text(chr(10).join(facts))}</pre>")


def _section(title: str, content: str) -> str:
    return f"<section><h2>{_text(title)}</h2>{content}</section>"


def _text(given: object) -> str:
    return html.escape(str(given))
