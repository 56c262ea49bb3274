"""What stands before each row of a table over runs: which run it is of, where and how it ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from perflab.across.choosing import began
from perflab.display import plain
from perflab.recordings import FREE_PARAMETERS, ManyRuns, RunFacts

NEVER = datetime.min.replace(tzinfo=UTC)


def framed(found: ManyRuns) -> pd.DataFrame:
    """Return the rows with the facts of their runs before them."""
    every = list(found.facts.values())
    # Of no run at all there are the same columns.
    runs = pd.DataFrame([_run_columns(facts) for facts in every or [RunFacts(folder="")]])
    runs = runs[: len(every)].assign(**_differing(every)).set_axis(list(found.facts))
    rows = found.table.to_pandas()
    place = pd.Series(range(len(runs)), index=runs.index)
    rows = rows.iloc[rows["folder"].map(place).argsort(kind="stable")]
    facts = runs.loc[rows["folder"]].reset_index(drop=True)
    table: pd.DataFrame = pd.concat(
        [facts, rows.drop(columns="folder").reset_index(drop=True)], axis=1
    )
    table.attrs["problems"] = list(found.problems)
    return table


def _run_columns(facts: RunFacts) -> dict[str, Any]:
    return {
        "run": facts.run_id,
        "experiment": facts.experiment,
        "backend": facts.backend,
        "run_state": facts.state,
        "created_at": pd.NaT if began(facts) == NEVER else pd.Timestamp(began(facts)),
        "commit": facts.commit,
        "dirty": facts.dirty,
        "code": facts.code,
        "machine": machine_words(facts),
        "machine_id": facts.machine_id,
        "question_id": facts.question_id,
    }


def _differing(every: Sequence[RunFacts]) -> dict[str, list[Any]]:
    """Return the values of the parameters that differ between runs, None where one has none."""
    asked = [facts.parameters for facts in every]
    names = dict.fromkeys(name for each in asked for name in each)
    return {
        f"parameter_{name}": [_cell(each.get(name)) for each in asked]
        for name in names
        if len({plain(each.get(name)) for each in asked}) > 1
    }


def _cell(value: Any) -> Any:
    """Return a parameter as a cell that can be grouped by: lists as text."""
    return plain(value) if isinstance(value, (list, dict)) else value


def machine_words(facts: RunFacts) -> str:
    """Return a machine in a few words: processor, cores, memory, kernel."""
    machine = facts.machine
    words = [str(machine.get("cpu", "unknown machine")), f"{machine.get('cores', '?')} cores"]
    if isinstance(size := machine.get("memory_bytes"), int):
        words.append(f"{size / 2**30:.0f} GiB")
    if kernel := machine.get("kernel"):
        words.append(f"kernel {kernel}")
    return ", ".join(words)


def apart(finished: pd.DataFrame, every: Iterable[RunFacts]) -> dict[str, str]:
    """Return by question what sets its runs apart from the others: backend, machine, parameters.

    Only what differs between the questions is named.
    """
    shown = set(finished["question_id"]) if len(finished) else set()
    asked = {facts.question_id: facts for facts in every if facts.question_id in shown}
    words = {key: _parts(facts) for key, facts in asked.items()}
    names = dict.fromkeys(name for each in words.values() for name in each)
    differ = [
        name
        for name in names
        if name == "backend" or len({each.get(name) for each in words.values()}) > 1
    ]
    return {
        key: "; ".join(
            f"{name}={each[name]}" if name not in ("backend", "machine") else each[name]
            for name in differ
            if name in each
        )
        for key, each in words.items()
    }


def _parts(facts: RunFacts) -> dict[str, str]:
    own = {
        name: plain(value)
        for name, value in facts.parameters.items()
        if name not in FREE_PARAMETERS
    }
    return {"backend": facts.backend, "machine": machine_words(facts), **own}
