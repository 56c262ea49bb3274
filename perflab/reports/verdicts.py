"""Tables of verdicts that show themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pandas as pd

from perflab.analysis.answers import answers_of
from perflab.analysis.between_runs import BETTER, DIFFERS, WORSE, RunComparison
from perflab.analysis.effect_words import interval_words
from perflab.analysis.evaluation import Finding, not_asked
from perflab.analysis.results import AgainstStudy, Compared
from perflab.analysis.run_sides import AT_DIFFERENT_TIMES
from perflab.recordings import Run
from perflab.recordings.display import Shown, escaped, html_list
from perflab.reports.causes import why_of_pairs
from perflab.reports.cells import cell_text, is_numeric, p_value
from perflab.reports.duels import above_the_answer
from perflab.reports.findings import (
    ADJUSTED,
    answer_table,
    measured_summary,
    readable_findings,
    readable_summary,
    reading_notes,
)
from perflab.reports.methods import first_said
from perflab.statistics.in_words import MISSING, counted

RIGHT = frozenset({"n", "p", ADJUSTED})
# Up to so many treatments stand side by side; more stand one below the other.
MOST_ACROSS = 8
COMPARED = ("treatment", "response", "B / A [95%]", "runs", "trials", "p, adjusted", "verdict")
COLORS = {"worse": "#c0392b", "better": "#2e7d32"}


# Green is for a claim whose size is as published, too; the words stand beside every colour.
GREY, PLAIN, RED, GREEN = "#8c8c8c", "transparent", "#d6453d", "#2e9e5b"
LOOKS = {
    **dict.fromkeys((*AgainstStudy, *Compared), GREY),
    **dict.fromkeys((AgainstStudy.IN_DIRECTION, AgainstStudy.LESS, AgainstStudy.MORE), PLAIN),
    **dict.fromkeys((AgainstStudy.OTHER_WAY, AgainstStudy.NO_EFFECT), RED),
    AgainstStudy.AS_PUBLISHED: GREEN,
}


def shown_findings(run: Run, findings: Sequence[Finding]) -> Shown:
    """Return published against measured as a table, with the claims that were not tested below.

    Related columns share a cell.
    """
    table = readable_findings(findings)
    text = pd.DataFrame(map(_row, table.to_dict("records")))
    if "published" in text and (text["published"] == MISSING).all():
        del text["published"]
    marks = {str(result): color for result, color in LOOKS.items()}
    notes = [*filter(None, [not_asked(run)]), *reading_notes(findings)]
    return Shown(table, text, RIGHT, notes=notes, marks=marks)


def _row(row: Mapping[Any, Any]) -> dict[str, str]:
    details = [f"of: {row['response']}", f"source: {row['source']}"]
    return {
        "claim": "\n".join([row["claim"], *details]),
        "published": str(row["published"]),
        "measured [95%]": "\n".join(
            [broken(str(row["measured [95%]"])), *_achieved(row), *_stated(row, "left out")]
        ),
        "n": str(row["n"]),
        "p": str(row["p"]),
        ADJUSTED: str(row[ADJUSTED]),
        "verdict": "\n".join([row["verdict"], *_stated(row, "decision"), *_stated(row, "scope")]),
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


def _stated(row: Mapping[Any, Any], name: str) -> list[str]:
    """Return a cell as a line of another one; no line where it is empty."""
    return [] if row[name] == MISSING else [str(row[name])]


def shown_answers(run: Run, findings: Sequence[Finding], reasons: str = "") -> Shown:
    """Return the answer to the run's questions, and below a row for each claim.

    ``reasons`` says where the reasons of trials stand that do not count.
    """
    table = answer_table(findings)
    known = table.loc[:, ["claim", "here", *(["study"] if table["study"].any() else [])]]
    reasons = reasons or f"perflab show {run.run_id} has the reasons"
    notes = [*above_the_answer(run), *first_said(run, reasons), *why_of_pairs(run)]
    return Shown(table, known, heading=headline(run, findings), notes=notes)


def headline(run: Run, findings: Sequence[Finding]) -> str:
    """Return the run's questions, each with its answer."""
    return "; ".join(f"{answer.question} {answer.text}" for answer in answers_of(run, findings))


def shown_summary(run: Run) -> Shown:
    """Return what each treatment did; a few treatments stand side by side."""
    table = readable_summary(run)
    texts = measured_summary(table)
    notes = [f"In brackets: 95% intervals. {MISSING}: too few trials or requests to say."]
    narrow = texts.assign(**{name: texts[name].map(broken) for name in texts.columns[1:]})
    if len(texts) > MOST_ACROSS:
        return Shown(table, narrow, frozenset(texts.columns[2:]), notes=notes)
    across = narrow.set_index("treatment").T.rename_axis("").reset_index()
    return Shown(table, across, frozenset(across.columns[1:]), notes=notes)


def shown_comparison(a: Sequence[Run], b: Sequence[Run], comparison: RunComparison) -> Shown:
    """Return the comparison in a sentence, ratios B / A with verdicts, and notes below."""
    text = comparison_text(comparison.table)
    notes = [
        f"{name}: {', '.join(run.run_id for run in side)}"
        for name, side in zip("AB", (a, b), strict=True)
    ]
    notes += [*comparison.obstacles, *comparison.notes]
    right = frozenset(text.columns[2:6])
    return Shown(comparison.table, text, right, _in_a_sentence(comparison), notes, COLORS)


def _in_a_sentence(comparison: RunComparison) -> str:
    if comparison.obstacles:
        return "A and B are not comparable"
    verdicts, rows = comparison.table["verdict"], counted(len(comparison.table), "row")
    told = [
        f"{word} in {number}"
        for begin, word in ((WORSE, WORSE), (BETTER, BETTER), (DIFFERS, "differs"))
        if (number := int(verdicts.str.startswith(begin).sum()))
    ]
    found = f"{', '.join(told)} of {rows}" if told else f"no certain difference in {rows}"
    if comparison.enough and comparison.apart:
        found = f"{AT_DIFFERENT_TIMES}, so nothing is certain in {rows}"
    return f"B against A: {found}"


def comparison_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a comparison of runs or treatments as text."""
    rows = [
        (
            row["treatment"],
            row["response"],
            _effect_of_row(row),
            f"{row['runs_a']}, {row['runs_b']}",
            f"{row['trials_a']}, {row['trials_b']}",
            p_value(row["p_adjusted"]),
            row["verdict"],
        )
        for row in table.to_dict("records")
    ]
    return pd.DataFrame(rows, columns=list(COMPARED), dtype=object)


def _effect_of_row(row: Mapping[Any, Any]) -> str:
    """Return a ratio, or the difference where a value is 0 and there is no ratio."""
    ends = (row["effect"], row["low"], row["high"])
    if row["scale"] == "ratio":
        return interval_words(*ends, "ratio")
    difference = interval_words(*ends, "difference", row["unit"])
    return f"B - A: {difference} (no ratio: a value is 0)"


def shown_table(table: pd.DataFrame) -> Shown:
    """Return any table, with three significant digits."""
    right = frozenset(str(name) for name in table.columns if is_numeric(table[name]))
    return Shown(table, table.map(cell_text), right)


class Saved(tuple[Path, ...]):
    """Saved files, which show their folder and their names below what was found."""

    heading: str

    def __new__(cls, paths: Iterable[Path], heading: str = "") -> Self:
        saved = super().__new__(cls, paths)
        saved.heading = heading
        return saved

    def _repr_html_(self) -> str:
        above = f"<p><b>{escaped(self.heading)}</b></p>" if self.heading else ""
        return f"<div>{above}{html_list(self._lines())}</div>"

    def __repr__(self) -> str:
        return "\n\n".join(filter(None, [self.heading, "\n- ".join(self._lines())]))

    def _lines(self) -> list[str]:
        """Return the folder, and a line of names for each figure."""
        kinds: dict[str, list[str]] = {}
        for path in self:
            kinds.setdefault(path.stem, []).append(path.suffix)
        names = [f"{stem}{', '.join(suffixes)}" for stem, suffixes in kinds.items()]
        return [f"Saved in {self[0].parent if self else 'no folder'}:", *names]
