"""A duel for a pull request: 25 lines of Markdown, and the same as data.

Neither has a path of the machine. Texts may repeat what a service answered; in Markdown they stand
escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from perflab.analysis.noise import doubt
from perflab.recordings import Run
from perflab.recordings.sharing import without_paths
from perflab.reports.causes import why_data
from perflab.reports.cells import cell, json_number, to_markdown
from perflab.reports.duel_notes import notes
from perflab.reports.duel_pairs import Pair, treatments_of
from perflab.reports.duel_table import result_table
from perflab.reports.duels import above_the_answer, answer_lines, beside_the_answer

MOST_LINES = 25


def as_markdown(run: Run, pairs: Sequence[Pair]) -> str:
    """Return the answer, a doubt, the table and what limits it; of many notes the first."""
    first, *others = map(cell, [*above_the_answer(run), *_answers(run, pairs)])
    lines = [f"### {first}", "", *others]
    if why := doubt(run):
        lines.append(f"**DOUBTFUL**: {cell(why)}")
    lines += ["", *to_markdown(result_table(run, pairs)).splitlines(), ""]
    every = notes(run, pairs)
    shown = every[: max(1, MOST_LINES - len(lines) - 1)]
    lines += [f"- {cell(note)}" for note in shown]
    if left := len(every) - len(shown):
        lines.append(f"- {left} more: `perflab show {run.run_id}`")
    return without_paths(run.record, "\n".join(lines) + "\n")


def as_data(run: Run, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the same as lists of text; ``rows`` has the effect of each response in numbers.

    A number that is not known, or not finite, is None.
    """
    shared = partial(without_paths, run.record)
    rows = [
        {
            "variant": pair.new,
            "baseline": pair.old,
            "response": response,
            "result": str(finding.verdict.result),
            "scale": finding.contrast.scale,
            **(
                {
                    "estimate": json_number(finding.effect.estimate),
                    "low": json_number(finding.effect.low),
                    "high": json_number(finding.effect.high),
                    "n": finding.effect.n,
                }
                if finding.effect
                else {"reason": shared(finding.verdict.reason or finding.absent)}
            ),
            "thresholds": {
                threshold.text: str(result)
                for threshold, result in pair.gate.items()
                if threshold.response == response
            },
        }
        for pair in pairs
        for response, finding in pair.findings.items()
    ]
    return {
        "run": run.run_id,
        "before": [*map(shared, above_the_answer(run))],
        "answers": [*map(shared, _answers(run, pairs))],
        "doubt": shared(doubt(run)),
        "rows": rows,
        "why": {
            pair.new: _everywhere(
                shared, why_data(run, *treatments_of(run, next(iter(pair.findings.values()))))
            )
            for pair in pairs
        },
        "notes": [*map(shared, notes(run, pairs))],
    }


def _everywhere(change: Callable[[str], str], data: Any) -> Any:
    """Return data with every text in it changed."""
    if isinstance(data, str):
        return change(data)
    if isinstance(data, Mapping):
        return {name: _everywhere(change, value) for name, value in data.items()}
    return [_everywhere(change, each) for each in data] if isinstance(data, list | tuple) else data


def _answers(run: Run, pairs: Sequence[Pair]) -> list[str]:
    answers = [line for pair in pairs for line in answer_lines(run, pair, len(pairs) == 1)]
    return [*answers, *beside_the_answer(run, pairs)]
