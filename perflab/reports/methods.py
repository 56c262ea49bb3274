"""Describes a run: its method, machine, parameters, command, and what a reader must know first."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pandas as pd

from perflab.analysis.gates.first_line import are_of_a_duel
from perflab.analysis.noise import doubt
from perflab.parameters import as_text
from perflab.paths import FOREIGN
from perflab.recordings import Run, RunRecord
from perflab.recordings.display import plain
from perflab.recordings.imports.results import doubts
from perflab.recordings.schema import is_imported
from perflab.recordings.sharing import folder_of, shared_parameters
from perflab.reports.cells import to_markdown
from perflab.statistics.in_words import counted, number

STATISTICS = (
    "The unit of statistics is the trial, never the request. Treatments are compared within "
    "blocks; an effect is the Hodges-Lehmann estimate of the differences of blocks (on logs, so a "
    "ratio, unless it is called a difference), with the 95% interval that inverts the signed-rank "
    "test; below 6 blocks it is Student's t interval. {} Trials that are not valid enter no "
    "comparison."
)
OF_CLAIMS = "P-values are adjusted for the claims about one response."
OF_A_DUEL = (
    "The share of failures is that of all requests of a side, with an exact interval. What the "
    "first line says holds together at 5%, by Holm's method over its responses and all pairs."
)
MOST_NAMED = 8
# The command leaves these parameters out: they do not say what is measured.
LEFT_OUT_OF_COMMAND = ("from_run", "resume", "wait_s", "backend")
AT_THE_END = "the reasons stand at the end"


def first_said(run: Run, reasons: str = AT_THE_END) -> list[str]:
    """Return what a reader must know first: a run did not finish, trials do not count, others ran.

    ``reasons`` says where the reasons of those trials stand.
    """
    record, states, lines = run.record, run.current_trials()["state"], []
    if record.state != "finished":
        reason = f" ({record.reason})" if record.reason else ""
        lines.append(
            f"This run is {record.state_text}{reason}: what follows rests on the trials it has."
        )
    if not len(run.trials()):
        return [*lines, "The run has no trial: nothing was measured."]
    if is_imported(record):
        groups = run.compared_trials().groupby("treatment", sort=False)
        lines.append(f"Requests: {'; '.join(f'{name} {doubts(rows)}' for name, rows in groups)}.")
    if not (states == "valid").any():
        lines.append("No trial of this run is valid: no number of it may be used.")
    elif (bad := int((states != "valid").sum())) > 0:
        lines.append(
            f"{bad} of {counted(len(states), 'trial')} {'does' if bad == 1 else 'do'} not count; "
            f"{reasons}."
        )
    if why := doubt(run):
        lines.append(f"Doubtful: {why}.")
    if run.problems:
        lines.append(f"The recording is damaged in {counted(len(run.problems), 'place')}.")
    return lines


def method(run: Run) -> str:
    """Return design, n, load and statistics of a run as a paragraph."""
    of = OF_A_DUEL if are_of_a_duel(run.record.contrasts) else OF_CLAIMS
    statistics = STATISTICS.format(of)
    return " ".join([f"{design(run)}{_sharing(run.record)}", load(run.record), statistics])


def design(run: Run) -> str:
    """Return blocks, trials and treatments of a run in a sentence."""
    record = run.record
    labels = [*record.labels.values()]
    names = "; ".join(labels[:MOST_NAMED])
    if len(labels) > MOST_NAMED:
        names += f"; and {len(labels) - MOST_NAMED} more"
    measured, planned = len(run.current_trials()), len(labels) * record.blocks
    trials = counted(planned, "trial")
    if measured != planned:
        trials = f"{measured} of {planned} planned trials"
    rule = f" ({record.until_decided.text()})" if record.until_decided else ""
    return (
        f"Randomised blocks: {counted(record.blocks, 'block')}{rule}, each with one trial of every "
        f"treatment, in random order and then in the same order backwards (seed {record.seed}), "
        f"{trials} in all, of "
        f"{counted(len(labels), 'treatment')}: {names}."
    )


def _sharing(record: RunRecord) -> str:
    """Return how the trials of a block share its time; empty where one follows the other."""
    words = ""
    if record.shares_time:
        design_ms = record.design.slice_ms if record.design else record.parameters.get("slice_ms")
        slice_ms = design_ms or math.nan
        paused = (record.design and record.design.paused) or ()
        rest = f", {', '.join(paused)} paused in the turns of others" if paused else ""
        words = (
            f" The treatments of a block take turns in windows of {slice_ms:g} ms in random order"
            f"{rest} (randomised multiple interleaved trials; Abedi and Brecht, "
            "2017). The first fifth of each slice is not counted; what was under way late in the "
            "gap after it met the next, and its own time is in no number that this could move by "
            "more than 5%."
        )
    if not (record.design and record.design.why):
        return words
    order = words or " One trial follows the other."
    return f"{order} Chosen by the load and its responses: {record.design.why}."


def load(record: RunRecord) -> str:
    """Return the load of each treatment, once where all have the same."""
    loads: dict[str, list[str]] = {}
    for name, label in record.labels.items():
        try:
            whole = record.whole(name)
            words = load_words(whole["workload"]["arrivals"])
            words += _at_start(whole.get("at_start"))
        except (KeyError, TypeError, ValueError):
            continue
        loads.setdefault(words, []).append(label)
    if len(loads) > MOST_NAMED:
        return f"The load differs between treatments: {len(loads)} loads, as in the record."
    if len(loads) == 1 and sum(map(len, loads.values())) == len(record.treatments):
        return f"Load of every trial: {next(iter(loads))}."
    return " ".join(f"Load of {', '.join(labels)}: {words}." for words, labels in loads.items())


def load_words(arrivals: Mapping[str, Any]) -> str:
    """Return in words how requests arrive; ``arrivals`` is from the record."""
    kind = arrivals["kind"]
    parts = []
    if measured := _amount(arrivals.get("requests"), arrivals.get("duration_s")):
        parts.append(f"{measured} measured")
    if warm_up := _amount(arrivals.get("warmup_requests"), arrivals.get("warmup_s")):
        parts.append(f"{warm_up} of warm-up before")
    if arrivals.get("stages"):
        parts.append(f"in {counted(len(arrivals['stages']), 'stage')}")
    for name, word in (("think_time_s", "think time"), ("pacing_s", "constant pacing")):
        if arrivals.get(name):
            parts.append(f"{word} {number(arrivals[name])} s")
    return ", ".join([_source(kind, arrivals), *parts])


def _at_start(load: Mapping[str, Any] | None) -> str:
    if not load:
        return ""
    requests = counted(int(load["arrivals"]["requests"]), "request")
    return f", and {requests} to warm up whenever services have started"


def _source(kind: str, arrivals: Mapping[str, Any]) -> str:
    users = arrivals.get("users")
    if kind == "closed":
        return f"closed loop of {counted(int(users or 0), 'user')}"
    if kind == "open":
        rate = arrivals.get("rate_rps")
        how = f", {arrivals['arrivals']} arrivals" if arrivals.get("arrivals") else ""
        return f"open loop{f' at {number(rate)} requests/s' if rate else ''}{how}"
    return f"{kind} users" + (f" ({users})" if users else "")


def _amount(requests: Any, seconds: Any) -> str:
    if requests:
        return counted(int(requests), "request")
    return f"{number(seconds)} s" if seconds else ""


def environment(record: RunRecord) -> dict[str, str]:
    """Return what the run was measured on: machine, system, interpreter and services."""
    facts, machine = record.environment, record.environment.get("machine", {})
    memory = machine.get("memory_bytes")
    parts = [
        str(machine.get("cpu", "")),
        counted(int(machine["cores"]), "core") if machine.get("cores") else "",
        f"{number(memory / 2**30)} GiB" if memory else "",
    ]
    return {
        "machine": ", ".join(filter(None, parts)),
        "system": str(facts.get("system", "")),
        "CPU clock": f"governor {facts['governor']}, turbo {facts.get('turbo', 'unknown')}"
        if facts.get("governor", "unknown") != "unknown"
        else "",
        "interpreter": f"Python {facts['python']}" if facts.get("python") else "",
        "services": _services(record),
        "images": ", ".join(f"{name} {image[:19]}" for name, image in record.images.items()),
    }


def _services(record: RunRecord) -> str:
    """Return each service with the versions of the packages that it is named after, else of all."""
    services = []
    for name, versions in record.versions.items():
        listed = [f"{package} {text}" for package, text in versions.items() if package != "python"]
        matching = [package for package in listed if name.split("_")[0] in package]
        shown = matching or listed if len(listed) <= MOST_NAMED else matching
        services.append(f"{name} ({', '.join(shown)})" if shown else name)
    return "; ".join(services)


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
        "not separated on this machine": record.shared_cores,
        "blocks, seed": f"{record.blocks_text()}, {record.seed}",
        "valid trials": run.n_text(),
        "code": f"commit {record.commit}, perflab {version('perflab')}",
    }
    listed = pd.DataFrame([(k, str(v)) for k, v in facts.items() if v], columns=["what", "value"])
    parameters = pd.DataFrame(
        [(f"`{name}`", plain(value)) for name, value in record.parameters.items()],
        columns=["parameter", "value"],
    )
    return to_markdown(listed) + "\n" + to_markdown(parameters)


def where_and_when(run: Run) -> str:
    """Return in a sentence when and on which machine a run was measured."""
    record, states = run.record, run.current_trials()["state"]
    facts = environment(record)
    verb = "Imported" if is_imported(record) else "Measured"
    machine = ", ".join(filter(None, [facts["machine"], facts["interpreter"]]))
    return (
        f"{verb} {record.created_at}, backend {record.backend}, on {machine or 'a machine'}: "
        f"{(states == 'valid').sum()} of {counted(len(states), 'trial')} valid (run "
        f"`{run.run_id}`, commit {record.commit})."
    )


def _placement(placement: dict[str, Any]) -> str:
    places = {
        role: plain(cores)
        for role, cores in placement.items()
        # Older records have cores of the kernel, which nothing was bound to.
        if role not in ("shared", "kernel") and cores not in (None, "", [], ())
    }
    return "; ".join(
        f"{role}: core{'s' * (',' in cores)} {cores}" for role, cores in places.items()
    )


def command(record: RunRecord) -> str:
    """Return the shell command that runs the experiment again, with all its parameters.

    It is typed in the folder of the run's own services, where there is one.
    """
    words = ["perflab", "run", record.experiment, "--backend", record.backend]
    for name, value in shared_parameters(record, ".").items():
        if name not in LEFT_OUT_OF_COMMAND and value not in (None, ""):
            words += ["-p", f"{name}={as_text(value)}"]
    return shlex.join(words)


def reproduce(record: RunRecord) -> str:
    """Return the shell commands that measure the run again.

    Where services are the user's own, their folder is named, and the lab's commit is a remark.
    """
    code = str(record.code.get("commit") or "")
    foreign = any(name.startswith(FOREIGN) for name in record.code.get("sources", {}))
    if folder_of(record) or foreign:
        lines = [f"cd {shlex.quote(folder_of(record))}"] if folder_of(record) else []
        lab = f"# measured by perflab {version('perflab')}, commit {record.commit}"
        return "\n".join([lab, *lines, command(record)])
    changed = "  # the run was measured with changes on top of it" * ("+changes" in record.commit)
    lines = [f"git checkout {shlex.quote(code)}{changed}"] if code else []
    return "\n".join([*lines, command(record)])
