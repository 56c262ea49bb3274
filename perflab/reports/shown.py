"""Shows runs in a notebook: tables whose cells wrap, and lists of saved files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from perflab.analysis.between_runs import compare_runs
from perflab.analysis.evaluation import not_asked
from perflab.recordings import Run
from perflab.recordings.display import Shown, html_list
from perflab.recordings.tables import NOT_JUDGED
from perflab.reports.findings import readable_findings, readable_summary
from perflab.reports.markdown import (
    cell_text,
    estimate,
    is_numeric,
    p_value,
)
from perflab.reports.verdicts import broken, shown_verdicts
from perflab.statistics.in_words import MISSING

# Up to so many treatments stand side by side; more stand one below the other.
MOST_ACROSS = 8
STATES = ("valid", "invalid", "failed")
TREATMENT, CPU = "treatment", "CPU"
COMPARED = ("treatment", "response", "B / A [95%]", "runs", "trials", "p, adjusted", "verdict")
COLORS = {"worse": "#c0392b", "better": "#2e7d32"}


def shown_findings(run: Run) -> Shown:
    """Return published against measured as a table, with the claims that were not tested below."""
    return shown_verdicts(readable_findings(run), notes=[*filter(None, [not_asked(run)])])


def shown_summary(run: Run) -> Shown:
    """Return what each treatment did; a few treatments stand side by side."""
    table = readable_summary(run)
    counted = table.assign(trials=[_trials(row) for row in table.to_dict("records")])
    responses = table.columns.drop([TREATMENT, *STATES, NOT_JUDGED], errors="ignore")
    texts = counted[[TREATMENT, "trials", *responses]]
    # A response without any measurement has no column.
    texts = texts.loc[:, ~(texts == MISSING).all()]
    notes = [f"In brackets: 95% intervals. {MISSING}: too few trials or requests to say."]
    if len(texts) > MOST_ACROSS:
        texts = _narrow(texts)
        right = frozenset(texts.columns[2:].drop(CPU, errors="ignore"))
        return Shown(table, texts, right, notes=notes)
    texts = texts.assign(**{name: texts[name].map(broken) for name in texts.columns[1:]})
    across = texts.set_index(TREATMENT).T.rename_axis("").reset_index()
    return Shown(table, across, frozenset(across.columns[1:]), notes=notes)


def _narrow(text: pd.DataFrame) -> pd.DataFrame:
    """Put the CPU of all services into one column, and intervals on lines of their own."""
    services = [name for name in text.columns if str(name).startswith(f"{CPU} ")]
    cpu = [
        "\n".join(f"{name.removeprefix(CPU).strip()} {row[name]}" for name in services)
        for row in text.to_dict("records")
    ]
    narrow = text.drop(columns=services)
    narrow = narrow.assign(**{name: narrow[name].map(broken) for name in narrow.columns[1:]})
    return narrow.assign(**{CPU: cpu}) if services else narrow


def _trials(row: Mapping[Any, Any]) -> str:
    if NOT_JUDGED in row:
        return f"{row[NOT_JUDGED]}, {NOT_JUDGED}"
    counts = [int(str(row[state]).replace(",", "")) for state in STATES]
    return f"{counts[0]} of {sum(counts)} valid"


def shown_comparison(a: Sequence[Run], b: Sequence[Run]) -> Shown:
    """Return ratios B / A with verdicts, or an empty table with the reasons below it."""
    comparison = compare_runs(a, b)
    text = comparison_text(comparison.table)
    notes = [
        f"{name}: {', '.join(run.run_id for run in side)}"
        for name, side in zip("AB", (a, b), strict=True)
    ]
    if comparison.obstacles:
        notes += ["They are not comparable:", *comparison.obstacles]
    right = frozenset(text.columns[2:6])
    return Shown(comparison.table, text, right, notes=[*notes, *comparison.notes], marks=COLORS)


def comparison_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a comparison of runs or treatments as text."""
    rows = [
        (
            row["treatment"],
            row["response"],
            estimate(row["ratio"], row["low"], row["high"]),
            f"{row['runs_a']}, {row['runs_b']}",
            f"{row['trials_a']}, {row['trials_b']}",
            p_value(row["p_adjusted"]),
            row["verdict"],
        )
        for row in table.to_dict("records")
    ]
    return pd.DataFrame(rows, columns=list(COMPARED), dtype=object)


def shown_table(table: pd.DataFrame) -> Shown:
    """Return any table: one of findings as that of a run, others with three significant digits."""
    if {"claim", "verdict", "valid trials"} <= set(table.columns):
        return shown_verdicts(table)
    right = frozenset(str(name) for name in table.columns if is_numeric(table[name]))
    return Shown(table, table.map(cell_text), right)


def shown_runs(runs: Iterable[Run]) -> Shown:
    """Return runs as a table, one per row."""
    table = pd.DataFrame([dict(run.facts()) for run in runs])
    return Shown(table, table)


class Saved(tuple[Path, ...]):
    """Saved files, which show their folder and their names."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_list(self._lines())

    def __repr__(self) -> str:
        return "\n- ".join(self._lines())

    def _lines(self) -> list[str]:
        """Return the folder, and a line of names for each figure."""
        kinds: dict[str, list[str]] = {}
        for path in self:
            kinds.setdefault(path.stem, []).append(path.suffix)
        names = [f"{stem}{', '.join(suffixes)}" for stem, suffixes in kinds.items()]
        return [f"Saved in {self[0].parent if self else 'no folder'}:", *names]
