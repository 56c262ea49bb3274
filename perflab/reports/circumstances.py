"""What a run was measured on and how it was set, and what must be said of it before any number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from perflab.display import plain
from perflab.figures.origin import commit, n_text, perflab_version, shared_note
from perflab.numerals import counted
from perflab.recordings import Run
from perflab.recordings.imported import is_imported
from perflab.reports.markdown import to_markdown
from perflab.reports.methods import environment

NOT_PLACES = ("shared",)
AT_THE_END = "the reasons stand at the end"


def first_said(run: Run, reasons: str = AT_THE_END) -> list[str]:
    """Return what a reader must know first: that a run did not finish, or what does not count.

    ``reasons`` says where it stands why trials do not count.
    """
    record, trials, told = run.record, run.trials(), []
    if record.state != "finished":
        because = f" ({record.reason})" if record.reason else ""
        told.append(
            f"This run is {record.state}{because}: what follows rests on the trials it has."
        )
    if not len(trials):
        return [*told, "The run has no trial: nothing was measured."]
    states = trials.loc[~trials["superseded"].astype(bool), "state"]
    if not (states == "valid").any():
        told.append("No trial of this run is valid: no number of it may be used.")
    elif (bad := int((states != "valid").sum())) > 0:
        told.append(
            f"{bad} of {counted(len(states), 'trial')} {'does' if bad == 1 else 'do'} not count; "
            f"{reasons}."
        )
    if run.problems:
        told.append(f"The recording is damaged in {counted(len(run.problems), 'place')}.")
    return told


def set_up(run: Run) -> str:
    """Return two tables in Markdown: facts of the run and its machine, and its parameters."""
    record = run.record
    facts = {
        "run": f"`{run.run_id}`",
        "imported at" if is_imported(record) else "measured at": record.created_at,
        **environment(record),
        "backend": record.backend,
        "network path": record.network_path,
        "placement": _placement(dict(record.placement)),
        "not separated on this machine": shared_note(record),
        "blocks, seed": f"{record.blocks_text()}, {record.seed}",
        "valid trials": n_text(run),
        "code": f"commit {commit(record)}, perflab {perflab_version()}",
    }
    listed = pd.DataFrame([(k, str(v)) for k, v in facts.items() if v], columns=["what", "value"])
    parameters = pd.DataFrame(
        [(f"`{name}`", plain(value)) for name, value in record.parameters.items()],
        columns=["parameter", "value"],
    )
    return to_markdown(listed) + "\n" + to_markdown(parameters)


def where_and_when(run: Run) -> str:
    """Return in one paragraph when and on what a run was measured, and what is shared there."""
    record, trials = run.record, run.trials()
    made = trials[~trials["superseded"].astype(bool)] if len(trials) else trials
    valid = int((made["state"] == "valid").sum()) if len(made) else 0
    facts = environment(record)
    done = "imported" if is_imported(record) else "measured"
    told = [
        f"Run `{run.run_id}`, {done} {record.created_at} on the backend {record.backend}: "
        f"{counted(record.blocks, 'block')}, {valid} of {counted(len(made), 'trial')} valid",
        ", ".join(filter(None, [facts["machine"], facts["interpreter"]])),
        f"not separated there: {note}" if (note := shared_note(record)) else "",
        f"commit {commit(record)}",
    ]
    return "; ".join(filter(None, told)) + "."


def _placement(placement: dict[str, Any]) -> str:
    places = [
        f"{role}: core{'s' if _many(cores) else ''} {plain(cores)}"
        for role, cores in placement.items()
        if role not in NOT_PLACES and cores not in (None, "", [], ())
    ]
    return "; ".join(places)


def _many(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 1
