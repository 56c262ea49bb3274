"""The tables of one planted trial, and the columns that come from them, by system.

Where another test makes such tables already, they are taken from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perflab.recordings import RunRecord
from perflab.systems.chat import streams
from perflab.systems.metricstream.connection_cost import part_columns
from perflab.systems.registry.counts import counted_columns, download_columns
from perflab.trials.plan import Treatment
from perflab.trials.summary import message_table
from tests.support.planted_trial import Planted, PlantedTrial
from tests.support.synthetic import HOUR_NS
from tests.systems.chat.synthetic_streams import counts_of, cpu, crowd
from tests.systems.llm.planted_streams import answers
from tests.systems.metricstream.planted_connections import posts
from tests.systems.registry.planted_downloads import batches, looks, told_columns, told_of

Tables = dict[str, Any]
Effects = Mapping[str, float]
Made = tuple[Tables, dict[str, Any]]
REQUESTS = 24
CHAINS = {"main (run.py);send (web.py)": 30, "main (run.py);encode (codec.py)": 20}


def tables_of(
    record: RunRecord, treatment: Treatment, effects: Effects, rng: np.random.Generator
) -> Made:
    """Return the tables of a trial by name, and columns of its row.

    Parameters
    ----------
    effects : mapping
        The planted log effects by response, the trial's own noise included.
    """
    if record.experiment == "serialization":
        return _of_requests(treatment, effects, rng)
    return BY_SYSTEM.get(record.system, _of_requests)(treatment, effects, rng)


def _of_requests(treatment: Treatment, effects: Effects, rng: np.random.Generator) -> Made:
    """Return a closed loop, as fast as its throughput or its mean says."""
    log = effects.get("throughput_rps", -effects.get("mean_ms", 0.0))
    trial = PlantedTrial(
        rng,
        Planted(dict(treatment.levels)),
        300 * math.exp(log),
        REQUESTS,
        _writes(treatment),
        HOUR_NS,
    )
    found = {"requests": trial.requests, "samples": trial.samples}
    return (found | {"waits": trial.waits} if trial.waits is not None else found), trial.row()


def _writes(treatment: Treatment) -> bool:
    return any(node.name == "postgres" for node in treatment.stack.nodes) and (
        treatment.levels.get("database_write") != "no"
    )


def _of_streams(treatment: Treatment, effects: Effects, _: np.random.Generator) -> Made:
    """Return a crowd whose deliveries take as long as their p90 says."""
    delay_s = 0.004 * math.exp(effects.get("delivery_p90_ms", 0.0))
    messages = crowd(users=12, join_s=0.2, acting_s=5.0, delay_s=round(delay_s, 5))
    samples = cpu(messages, 0.6 if treatment.levels["login_hash"] != "none" else 0.0, joining_s=2.4)
    seen = streams.observed(messages, samples, ["chat", "client"], counts_of(messages))
    tables: Tables = {"samples": samples, "messages": message_table(messages)}
    if treatment.levels.get("profiler", "off") != "off":
        tables["calls"] = pd.DataFrame(CHAINS.items(), columns=["chain", "samples"])
        return tables, {**seen.columns, "profiler_looks": 2 * sum(CHAINS.values())}
    return tables, seen.columns


def _of_answers(treatment: Treatment, _: Effects, __: np.random.Generator) -> Made:
    has_few_files = treatment.levels["max_files"] != "enough"
    requests, chunks = answers(treatment.levels["version"], failed=5 if has_few_files else 0)
    if treatment.levels["kind"] == "batch":
        return {"requests": requests}, {}
    return {"requests": requests, "chunks": chunks}, {}


def _of_posts(treatment: Treatment, effects: Effects, _: np.random.Generator) -> Made:
    """Return posts; the naive client, which had room, is slow where it makes the server busy."""
    requests = posts(treatment.levels["connection"] == "per_request")
    rate_rps = 2000.0
    told = {
        "told_success_rate": 0.98,
        "told_achieved_rps": rate_rps * math.exp(-2 * effects.get("cpu_share_metricstream", 0.0)),
        "accept_queue_max_metricstream": 3,
        "accept_drops_metricstream": 0,
    }
    return {"requests": requests}, {**part_columns(requests), **told, "throughput_rps": rate_rps}


def _of_downloads(treatment: Treatment, _: Effects, __: np.random.Generator) -> Made:
    rung = treatment.levels["rung"]
    requests, progress = batches(rung)
    end_ns = int(requests["done_ns"].max())
    counts = looks(rung, (end_ns - HOUR_NS) / 1e9)
    tables: Tables = {"requests": requests, "registry_counts": counts, "progress": progress}
    columns = {**counted_columns(counts, end_ns), **download_columns(requests)}
    columns["requests"] = len(requests)
    if treatment.levels["load_from"] == "inside":
        tables = {**tables, "requests": requests.head(3), "other_load": told_of(requests)}
        del tables["progress"]
        columns = told_columns(columns)
    return tables, columns


BY_SYSTEM: Mapping[str, Callable[[Treatment, Effects, np.random.Generator], Made]] = {
    "chat": _of_streams,
    "llm": _of_answers,
    "metricstream": _of_posts,
    "registry": _of_downloads,
}
