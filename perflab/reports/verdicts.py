"""Tables of verdicts, for a terminal and for a notebook."""

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

# P-values are adjusted within a run, and a table may hold several runs.
OF_ITS_RUN = "p, adjusted for its run's claims"
RIGHT = frozenset({"n", "p", "trials"})


@dataclass(frozen=True)
class VerdictStyle:
    """How a verdict appears beside its words: a style for terminals, a colour (CSS) for pages."""

    style: str
    color: str


GREY = VerdictStyle("bright_black", "#8c8c8c")
PLAIN = VerdictStyle("", "transparent")
RED = VerdictStyle("red", "#d6453d")
# Green is for a claim whose size was reproduced too; the words stand beside every colour.
LOOKS = {
    Outcome.REPRODUCED: VerdictStyle("green", "#2e9e5b"),
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
    names = ["experiment", "backend", *columns(OF_ITS_RUN)]
    if not parts:
        return pd.DataFrame(columns=names)
    return pd.concat(parts, ignore_index=True)[names]


def shown_verdicts(table: pd.DataFrame, notes: Sequence[str] = ()) -> Shown:
    """Return a table of findings as a notebook shows it; related columns share a cell."""
    text = pd.DataFrame([_row(row) for row in table.to_dict("records")])
    marks = {outcome.value: look.color for outcome, look in LOOKS.items()}
    right = RIGHT | {name for name in map(str, text.columns) if name.startswith(ADJUSTED)}
    notes = [*notes, *reading_notes(table)]
    return Shown(table, text, right, notes=notes, marks=marks)


def _row(row: Mapping[Any, Any]) -> dict[str, str]:
    adjusted = next(name for name in row if str(name).startswith(ADJUSTED))
    # The decision is about the difference itself, whatever was published.
    decision = [] if row["decision"] == MISSING else [str(row["decision"])]
    decision = ["a difference is shown" if text == "different" else text for text in decision]
    details = [_where(row), f"of: {row['response']}", f"source: {row['source']}"]
    return {
        "claim": "\n".join([str(row["claim"]), *filter(None, details)]),
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
    """Put an interval on a line of its own, so that columns stay narrow."""
    return cell.replace(" [", "\n[").replace(" (", "\n(")


def _achieved(row: Mapping[Any, Any]) -> list[str]:
    """Return the level of the interval where it is not the 95% of the column's name."""
    level = str(row["achieved"])
    return [] if level in (MISSING, "95.0%") else [f"achieved {level}"]


def _left_out(row: Mapping[Any, Any]) -> list[str]:
    """Return why there is no number, or none from some blocks."""
    return [] if row["left out"] == MISSING else [str(row["left out"])]


def _single_run(row: Mapping[Any, Any]) -> list[str]:
    return [] if row["single run"] == MISSING else [f"single run: {row['single run']}"]


def to_terminal(table: pd.DataFrame, title: str = "Verdicts") -> Table:
    """Return a :func:`verdict_table` as a rich table of any width, with coloured verdicts."""
    from rich.table import Table
    from rich.text import Text

    caption = "\n".join(reading_notes(table))
    rich_table = Table(
        title=title, title_justify="left", box=None, padding=(0, 2, 1, 0),
        caption=Text(caption) if caption else None, caption_justify="left",
    )  # fmt: skip
    rich_table.add_column("claim", ratio=4, overflow="fold")
    rich_table.add_column("measured [95%]", ratio=3, overflow="fold")
    rich_table.add_column("verdict", ratio=3, overflow="fold")
    for row in table.to_dict("records"):
        style = LOOKS[Outcome(row["verdict"])].style
        # Markup would take an interval like "[1.49, 1.70]" for a style.
        valid, noise = f"{row['valid trials']} trials valid", f"noise: {row['noise']}"
        details = "".join(f"\n{line}" for line in (*_single_run(row), valid, noise))
        verdict = Text(str(row["verdict"]), style).append(details, "")
        rich_table.add_row(Text(f"{row['claim']}\n({_where(row)})"), Text(_numbers(row)), verdict)
    return rich_table


def _where(row: Mapping[Any, Any]) -> str:
    """Return experiment, backend and run of a row, as far as the table has them."""
    places = [str(row[name]) for name in ("experiment", "backend") if name in row]
    return ", ".join([*places, *([f"run {row['run']}"] if "run" in row else [])])


def _numbers(row: Mapping[Any, Any]) -> str:
    if row["measured [95%]"] == MISSING:
        return "\n".join([MISSING, *_left_out(row), f"published {row['published']}"])
    achieved = "".join(f", {level}" for level in _achieved(row))
    return (
        f"{row['measured [95%]']}\npublished {row['published']}\nn = {row['n']}{achieved}\n"
        f"p {row['p']}; p, adjusted: {row[OF_ITS_RUN]}"
        + "".join(f"\n{reason}" for reason in _left_out(row))
    )
