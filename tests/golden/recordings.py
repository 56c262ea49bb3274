"""Small recordings of every experiment with a planted truth, written through the real store.

Each experiment is recorded four times. In ``claimed`` every claim holds; a trial is refused and one
failed. In ``spoiled`` requests of one treatment are cut off, so that only bounds are known, and all
trials of another one are refused. In ``against`` every claim is wrong, and the trials' speed
follows that of the CPU. In ``unclear`` there is nothing but noise, in few blocks. The last two have
no requests: findings come from the rows of trials alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from perflab.analysis.computed_responses import COMPUTED
from perflab.host.placing import placement
from perflab.load.checks.trend import DRIFTING
from perflab.recordings import Contrast, Run, RunRecord, RunWriter
from perflab.recordings.responses import at_least_column, drift_column
from perflab.stacks.process_backend import choose
from perflab.systems import experiment
from perflab.trials.conductor import new_record
from perflab.trials.plan import RunPlan, Treatment
from perflab.trials.summary import identity_columns
from tests.golden.planted_tables import tables_of
from tests.support.synthetic import BUSY, DIED

CORES = 2
# What is not claimed to be of any size is planted with this log ratio.
EFFECT = 0.3
# The last treatment of a run drifts so far, as a log ratio of a load's end to the whole.
DRIFT = -0.5
BASES = (
    ("_share", 0.5), ("_ms", 20.0), ("_us", 900.0), ("_rps", 300.0), ("_bytes", 5e7), ("_s", 3.0),
    ("", 100.0),
)  # fmt: skip


@dataclass(frozen=True)
class Story:
    """How a recording comes out: the sign of its effects, its noise, its length and its faults."""

    sign: float
    noise: float
    blocks: int
    has_tables: bool = True
    has_bad_trials: bool = False
    is_spoiled: bool = False
    follows_the_cpu: bool = False


STORIES = {
    "claimed": Story(1.0, 0.01, blocks=7, has_bad_trials=True),
    "spoiled": Story(1.0, 0.05, blocks=6, is_spoiled=True),
    "against": Story(-1.0, 0.02, blocks=6, has_tables=False, follows_the_cpu=True),
    "unclear": Story(0.0, 0.25, blocks=4, has_tables=False),
}


@dataclass(frozen=True)
class Case:
    """An experiment and its parameters; ``cut_off`` and ``refused`` are levels of its spoiled run.

    Responses that can be bounds are those of ``cut_off`` treatments that are named in ``bounds``.
    A recording has ``more_blocks`` than its story.
    """

    experiment: str
    refused: Mapping[str, str] = field(default_factory=dict)
    cut_off: Mapping[str, str] = field(default_factory=dict)
    bounds: tuple[str, ...] = ()
    stories: tuple[str, ...] = tuple(STORIES)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    more_blocks: int = 0


TIMES = ("mean_ms", "p50_ms", "p99_ms")
PUBLISHED = {
    "preset": "published",
    "rungs": ("json", "protobuf", "json_login", "no_deflate_300", "no_deflate_425"),
}  # fmt: skip
CASES = {
    "chat_ladder": Case(
        "chat_ladder",
        refused={"rung": "protobuf"},
        parameters={
            "rungs": ("json", "protobuf", "uvloop", "no_deflate", "no_deflate_425"),
        },
    ),
    "chat_ladder_published": Case(
        "chat_ladder",
        refused={"rung": "protobuf"},
        stories=("claimed", "spoiled"),
        parameters=PUBLISHED,
    ),
    "latency_cpu": Case("latency_cpu", refused={"rung": "free_logins"}),
    "profile": Case("profile", refused={"rung": "orjson_profiled"}),
    "serialization": Case(
        "serialization",
        refused={"codec": "orjson", "operation": "serialize"},
        parameters={
            "codec": ("json", "orjson", "protobuf"),
            "operation": ("serialize", "deserialize"),
            "message": ("published",),
        },
    ),
    "flush_map": Case(
        "flush_map",
        refused={"synchronous_commit": "on", "flush_ms": "5"},
        parameters={"flush_ms": (0, 5), "pool_size": (50,)},
    ),
    "inference_runtime": Case(
        "inference_runtime", refused={"runtime": "onnx", "database_write": "no"}
    ),
    "sync_vs_async": Case(
        "sync_vs_async",
        refused={"driver": "asyncpg", "round_trip_ms": "5"},
        parameters={"pool_minconn": ("max",)},
    ),
    "synchronous_commit": Case(
        "synchronous_commit",
        refused={"synchronous_commit": "off"},
    ),
    # Its one claim of a time is about all three treatments.
    "synchronous_commit_cut_off": Case(
        "synchronous_commit",
        cut_off={"synchronous_commit": "on"},
        bounds=TIMES,
        stories=("spoiled",),
    ),
    "client_overhead": Case(
        "client_overhead",
        refused={"client": "httpx", "rate": "200"},
        parameters={"client": ("lean", "httpx", "http2"), "rate": (200.0, 1000.0)},
    ),
    "lab_check": Case(
        "lab_check",
        refused={"service": "+20%"},
        cut_off={"service": "+10%"},
        bounds=TIMES,
        parameters={"copies": 3, "planted": (1.1, 1.2), "stalls_ms": ()},
    ),
    "llm_streaming": Case(
        "llm_streaming",
        refused={"rung": "paced_new"},
        cut_off={"rung": "batch_new"},
        bounds=TIMES,
        parameters={
            "sets": ("kinds", "unpaced", "limits", "capacity"),
            "rungs": (
                "stream_old", "stream_new", "batch_old", "batch_new", "paced_old", "paced_new",
                "unpaced_old", "unpaced_new", "capacity_old", "capacity_new", "files_128_old",
                "files_128_new",
            ),
        },
    ),
    "connection_lifecycle": Case(
        "connection_lifecycle",
        refused={"rung": "phase_2"},
        cut_off={"rung": "thread_keeps_reused"},
        bounds=TIMES,
        parameters={
            "sets": ("phases", "interaction", "naive"),
            "rungs": (
                "sequential", "phase_1", "phase_2", "thread_closes_new", "thread_keeps_reused",
                "naive_closes_new",
            ),
        },
    ),
    "custom_service": Case(
        "custom_service",
        refused={"variant": "third"},
        cut_off={"variant": "new"},
        bounds=TIMES,
        more_blocks=5,
        parameters={
            "variants": tuple(
                f"{name}=command:python3 server.py --port {{port}} --rounds {rounds}"
                for name, rounds in (("old", 1000), ("new", 1500), ("third", 1200))
            ),
            "design": "trials",
        },
    ),
    "registry_downloads": Case(
        "registry_downloads",
        refused={"rung": "step_2"},
        cut_off={"rung": "step_0"},
        bounds=("total_duration_s",),
        parameters={
            "sets": ("ladder", "threads", "inside"),
            "clients": 20,
            "rungs": (
                "step_0", "plain_def", "step_1", "step_2", "step_3", "step_0_inside",
                "step_3_inside", "threads_6", "threads_10",
            ),
        },
    ),
}  # fmt: skip
NAMES = [f"{name}/{story}" for name, case in CASES.items() for story in case.stories]


def plan_of(case: Case, blocks: int) -> RunPlan:
    """Return the plan of a case, as a machine with two cores would make it."""
    own = experiment(case.experiment)
    # Some claims and labels go by the cores that there are.
    with (
        patch("os.cpu_count", lambda: CORES),
        patch("os.sched_getaffinity", lambda _: set(range(CORES))),
    ):
        return own.plan(own.check({**case.parameters, "blocks": blocks, "seed": 1}))


# A planted run need not survive a crash of the machine.
@patch("os.fsync", new=lambda _: None)
def write_recording(root: Path, name: str) -> Run:
    """Write one recording of ``NAMES``."""
    case_name, _, story_name = name.partition("/")
    case, story = CASES[case_name], STORIES[story_name]
    plan = plan_of(case, story.blocks + case.more_blocks)
    writer = RunWriter.create(root, _record(plan, name.replace("/", "-")))
    for row, tables in _trials(plan, case, story, writer.record):
        writer.commit_trial(
            row, tables.pop("requests", None), tables.pop("samples", None), **tables
        )
    writer.update(state="finished", finished_at="2026-01-02T03:14:05Z")
    return Run(writer.path)


def _record(plan: RunPlan, name: str) -> RunRecord:
    """Return a record without anything of this machine, this day and this checkout."""
    return new_record(plan, choose("process"), placement(range(CORES))).model_copy(
        update={
            "run_id": f"20260102T030405Z-{name}",
            "created_at": "2026-01-02T03:04:05Z",
            "environment": {"machine": {"cpu": "synthetic", "cores": CORES}},
            "code": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False},
            "network_path": "loopback",
            "sessions": [],
            "warnings": list(plan.warnings),
        }
    )


def _trials(
    plan: RunPlan, case: Case, story: Story, record: RunRecord
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the row and the tables of every trial."""
    rng = np.random.default_rng(zlib.crc32(record.run_id.encode()))
    drifting = np.random.default_rng(1)
    planted = _planted(plan, story.sign, record)
    refused, cut_off = (
        set(record.selected(dict(levels))) if story.is_spoiled and levels else set()
        for levels in (case.refused, case.cut_off)
    )
    bad = {(1, 0): ("failed", DIED), (1, 1): ("invalid", BUSY)} if story.has_bad_trials else {}
    for block, order in enumerate(record.order):
        shared = float(rng.normal(0, 0.1))
        for position, name in enumerate(order):
            treatment = plan.treatment(name)
            row = identity_columns(block, position, 0, name, treatment.levels)
            place = [each.name for each in plan.treatments].index(name)
            state, reason = bad.get((block, place), ("valid", None))
            state, reason = ("invalid", BUSY) if name in refused else (state, reason)
            row |= {"state": state, "reasons": [reason] if reason else []}
            speed = float(rng.normal(0, story.noise))
            effects = {each: log + shared + speed for each, log in planted[name].items()}
            tables, columns = tables_of(record, treatment, effects, rng)
            columns = {**_undeclared(plan, treatment, place, rng), **columns}
            columns |= {each: _base(each) * math.exp(effects[each]) for each in effects}
            columns["cpu_probe_before_ms"] = 5 * math.exp(speed if story.follows_the_cpu else 0)
            drift = DRIFT if place == len(planted) - 1 else 0.0
            columns |= {
                drift_column(each): float(drifting.normal(drift, 0.02))
                for each in DRIFTING
                if each in columns
            }
            if name in cut_off:
                columns |= _cut_off(
                    {each: columns[each] for each in case.bounds if each in columns}
                )
                columns["censored"] = 3
            has_tables = story.has_tables and state != "failed"
            yield (row if state == "failed" else columns | row), (tables if has_tables else {})


def _planted(plan: RunPlan, sign: float, record: RunRecord) -> dict[str, dict[str, float]]:
    """Return by treatment and response the log effects that come nearest to what is claimed."""
    names = [each.name for each in plan.treatments]
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    # Levels and shares follow from what is planted of the sides.
    compared = [each for each in plan.contrasts if each.scale in ("ratio", "difference")]
    for response in dict.fromkeys(each.response for each in compared):
        own = [each for each in compared if each.response == response]
        weights = np.array([_weights(each, names, record) for each in own])
        wanted = np.array([sign * _size(each, sign) for each in own])
        logs = np.linalg.lstsq(weights, wanted, rcond=None)[0]
        for name, log in zip(names, logs, strict=True):
            # Rounded: another linear algebra gives other last digits.
            found[name][response] = round(float(log), 3)
    return found


def _weights(contrast: Contrast, names: list[str], record: RunRecord) -> list[float]:
    """Return the weight of each treatment in a contrast."""
    weights = dict.fromkeys(names, 0.0)
    pairs = [(contrast, 1.0)]
    pairs += [(contrast.interaction, -1.0)] if contrast.interaction else []
    for pair, sign in pairs:
        for levels, side in ((pair.numerator, sign), (pair.denominator, -sign)):
            selected = record.selected(levels)
            for name in selected:
                weights[name] += side / len(selected)
    return list(weights.values())


def _size(contrast: Contrast, sign: float) -> float:
    """Return the log ratio that a claim says; of a claim of no effect, one that is against it."""
    if contrast.published_ratio is not None:
        return math.log(contrast.published_ratio)
    if contrast.published_direction == "none":
        return 0.0 if sign > 0 else EFFECT
    return -EFFECT if contrast.published_direction == "smaller" else EFFECT


def _undeclared(
    plan: RunPlan, treatment: Treatment, place: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return a number for every response that the system declares, of every service in its turn."""
    nodes = [node.name for node in treatment.stack.nodes]
    names = [
        each.name.replace("*", node)
        for each in plan.responses
        if each.name not in COMPUTED
        for node in (nodes if "*" in each.name else [""])
        if not each.name.startswith(("phase_", "profile_", "part_", "core_wait_"))
    ]
    factor = 1 + 0.1 * place
    found = {name: _base(name) * factor * float(np.exp(rng.normal(0, 0.02))) for name in names}
    # Memory is counted in whole bytes, in every trial of a run.
    return {
        name: round(each) if name.startswith("memory_") else each for name, each in found.items()
    }


def _base(response: str) -> float:
    return next(base for ending, base in BASES if ending in response)


def _cut_off(known: Mapping[str, float]) -> dict[str, float]:
    """Return what is left of responses of which it is only known what they are at least."""
    bounds = {at_least_column(name): 2 * value for name, value in known.items()}
    return {**dict.fromkeys(known, math.nan), **bounds}
