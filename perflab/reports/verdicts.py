"""Verdicts in a table: for a terminal, for a notebook, for a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from perflab.analysis.verdict import Outcome
from perflab.recordings import Run
from perflab.recordings.display import Shown
from perflab.reports.findings import ADJUSTED, columns, readable_findings, reading_notes
from perflab.statistics.in_words import MISSING

if TYPE_CHECKING:
    from rich.table import Table

# Claims of one run are a family: a table of several runs holds several.
OF_ITS_RUN = "p, adjusted for its run's claims"
RIGHT = frozenset({"n", "p", "trials"})


@dataclass(frozen=True)
class Look:
    """How a verdict appears beside its words: a style for terminals, a colour (CSS) for pages."""

    style: str
    color: str


GREY = Look("bright_black", "#8c8c8c")
PLAIN = Look("", "transparent")
RED = Look("red", "#d6453d")
# Only what is reproduced in size as well is green; the words always stand beside the colour.
LOOKS = {
    Outcome.REPRODUCED: Look("green", "#2e9e5b"),
    Outcome.SIZE_UNDECIDED: PLAIN,
    Outcome.SIZE_CONTRADICTED: PLAIN,
    Outcome.DIRECTION_SHOWN: PLAIN,
    Outcome.NOT_REPRODUCED: RED,
    Outcome.OPPOSITE: RED,
    Outcome.DIRECTION_NOT_SHOWN: GREY,
    Outcome.UNDECIDED: GREY,
    Outcome.SET_BY_LOAD: GREY,
    Outcome.NOT_TESTABLE: GREY,
    Outcome.UNPUBLISHED: GREY,
}


def verdict_table(runs: Iterable[Run]) -> pd.DataFrame:
    """Return every finding of ``runs`` as text, one row per claim.

    Columns: experiment, backend, and those of :func:`readable_findings`. Runs of different
    backends stay apart; nothing is pooled.
    """
    parts = [
        readable_findings(run, OF_ITS_RUN).assign(
            experiment=run.record.experiment, backend=run.record.backend
        )
        for run in runs
    ]
    named = ["experiment", "backend", *columns(OF_ITS_RUN)]
    if not parts:
        return pd.DataFrame(columns=named)
    return pd.concat(parts, ignore_index=True)[named]


def shown_verdicts(table: pd.DataFrame, notes: Sequence[str] = ()) -> Shown:
    """Return a table of findings as a notebook shows it; what belongs together shares a cell."""
    text = pd.DataFrame([_row(row) for row in table.to_dict("records")])
    marks = {outcome.value: look.color for outcome, look in LOOKS.items()}
    right = RIGHT | {name for name in map(str, text.columns) if name.startswith(ADJUSTED)}
    notes = [*notes, *reading_notes(table)]
    return Shown(table, text, right, notes=notes, marks=marks)


def _row(row: Mapping[Any, Any]) -> dict[str, str]:
    adjusted = next(name for name in row if str(name).startswith(ADJUSTED))
    # What may be said of the difference as such, whatever was published.
    decision = [told for told in (str(row["decision"]),) if told != MISSING]
    decision = ["a difference is shown" if told == "different" else told for told in decision]
    asked = [_where(row), f"of: {row['response']}", f"source: {row['source']}"]
    return {
        "claim": "\n".join([str(row["claim"]), *filter(None, asked)]),
        "published": str(row["published"]),
        "measured [95%]": "\n".join(
            [broken(str(row["measured [95%]"])), *_achieved(row), *_left_out(row)]
        ),
        "n": str(row["n"]),
        "p": str(row["p"]),
        str(adjusted): str(row[adjusted]),
        "verdict": "\n".join([str(row["verdict"]), *decision, *_single_run(row)]),
        "valid trials": str(row["valid trials"]),
        "noise": "\n".join(f"- {flag}" for flag in str(row["noise"]).split("; ")),
    }


def broken(cell: str) -> str:
    """Put an interval on a line of its own: columns stay narrow."""
    return cell.replace(" [", "\n[").replace(" (", "\n(")


def _achieved(row: Mapping[Any, Any]) -> list[str]:
    """Return the interval's own level where it is not the one that its column names."""
    told = str(row["achieved"])
    return [] if told in (MISSING, "95.0%") else [f"achieved {told}"]


def _left_out(row: Mapping[Any, Any]) -> list[str]:
    """Return why there is no number, or none from some blocks."""
    return [told for told in (str(row["left out"]),) if told != MISSING]


def _single_run(row: Mapping[Any, Any]) -> list[str]:
    return [] if row["single run"] == MISSING else [f"single run: {row['single run']}"]


def to_terminal(table: pd.DataFrame, title: str = "Verdicts") -> Table:
    """Return a :func:`verdict_table` as a rich table that any width fits, verdicts coloured."""
    from rich.table import Table
    from rich.text import Text

    caption = "\n".join(reading_notes(table))
    drawn = Table(
        title=title, title_justify="left", box=None, padding=(0, 2, 1, 0),
        caption=Text(caption) if caption else None, caption_justify="left",
    )  # fmt: skip
    drawn.add_column("claim", ratio=4, overflow="fold")
    drawn.add_column("measured [95%]", ratio=3, overflow="fold")
    drawn.add_column("verdict", ratio=3, overflow="fold")
    for row in table.to_dict("records"):
        style = LOOKS[Outcome(row["verdict"])].style
        # Text, not markup: an interval like "[1.49, 1.70]" would be taken for a style.
        valid, noise = f"{row['valid trials']} trials valid", f"noise: {row['noise']}"
        beside = "".join(f"\n{line}" for line in (*_single_run(row), valid, noise))
        verdict = Text(str(row["verdict"]), style).append(beside, "")
        drawn.add_row(Text(f"{row['claim']}\n({_where(row)})"), Text(_numbers(row)), verdict)
    return drawn


def _where(row: Mapping[Any, Any]) -> str:
    """Return where a row is from, as far as the table says it."""
    named = [str(row[name]) for name in ("experiment", "backend") if name in row]
    return ", ".join([*named, *([f"run {row['run']}"] if "run" in row else [])])


def _numbers(row: Mapping[Any, Any]) -> str:
    if row["measured [95%]"] == MISSING:
        return "\n".join([MISSING, *_left_out(row), f"published {row['published']}"])
    achieved = "".join(f", {each}" for each in _achieved(row))
    return (
        f"{row['measured [95%]']}\npublished {row['published']}\nn = {row['n']}{achieved}\n"
        f"p {row['p']}; p, adjusted: {row[OF_ITS_RUN]}"
        + "".join(f"\n{each}" for each in _left_out(row))
    )
