"""Streams through the real proxy, from a plan to the recording: every chunk, every failure."""

from __future__ import annotations

import pytest

from perflab import api
from perflab.recordings import Run

# Started side by side on a machine that is busy, services may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TOKENS = 8
SMALL = {
    "blocks": 1, "seed": 1, "fresh_blocks": 0, "users": 10, "duration_s": 1.5, "warmup_s": 0.5,
    "interval_s": 0.5, "tokens": TOKENS, "limits": [96], "stress_users": 120, "ramp_s": 4.0,
    "objectives": ["ttft_p95<30s"], "search_most": 45, "probe_s": 1.0,
    "sets": ["unpaced", "limits", "capacity"],
    "rungs": ["paced_old", "paced_new", "files_96_old", "files_96_new", "capacity_new"],
}  # fmt: skip


@pytest.fixture(scope="module")
def run() -> Run:
    return api.run("llm_streaming", {**SMALL, "backend": "process"})


def test_every_token_of_every_stream_is_a_chunk_of_the_recording(run: Run) -> None:
    trials = run.trials()
    assert set(trials["state"]) <= {"valid", "invalid"}
    paced = trials[trials["factor_max_files"] == "enough"]
    for column in ("chunks_per_s", "server_cpu_us_per_chunk", "server_count"):
        assert (paced[column] > 0).all(), column
    ids = paced["trial_id"].tolist()
    requests, chunks = run.requests(None, ids), run.table("chunks", ids)
    successes = requests[requests["error"] == ""]
    key = ["trial_id", "worker", "user", "planned_ns"]
    of_successes = chunks.merge(successes[key], on=key)
    # The last chunk says why the answer ends; the end marker is no chunk.
    assert (of_successes[~of_successes["is_end"]].groupby(key).size() == TOKENS + 1).all()
    assert (of_successes[of_successes["is_end"]].groupby(key).size() == 1).all()
    assert len(successes) == of_successes[key].drop_duplicates().shape[0]


def test_a_proxy_with_few_descriptors_fails_and_ends_the_load(run: Run) -> None:
    few = run.trials().query("factor_max_files == '96'")
    assert len(few) == 2
    assert few["successes_until_stop"].notna().all()
    # On a slow machine the fifth failure may end after the last user has left.
    bounds = few.get("users_at_stop_at_least", few["users_at_stop"])
    assert (few["users_at_stop"].fillna(bounds) <= 120).all()
    failed = run.requests(None, few["trial_id"].tolist()).query("error != ''")
    before = failed.query("stage != 'after_stop'")
    assert (before.groupby("trial_id").size().reindex(few["trial_id"], fill_value=0) >= 5).all()
    # The proxy answers with an error, or cannot even accept the connection.
    assert set(failed["error"]) <= {"status", "timeout", "unsent", "reset", "closed"}
    assert (failed.query("error == 'status'")["status"] == 503).all()


def test_the_search_of_a_trial_is_counted_apart_from_its_own_load(run: Run) -> None:
    trial = run.trials().set_index("factor_rung").loc["capacity_new"]
    steps = run.table("capacity_steps", [trial["trial_id"]])
    assert set(steps["outcome"]) <= {"held", "refused", "missed"}
    assert set(steps["users"]) <= set(range(1, 46))
    # Nearly no step misses this objective, so users held is a bound, by the range or by the client.
    # A slow machine may refuse every step: then no number of users is known to hold.
    held = trial.reindex(["users_held", "users_held_at_least"]).astype(float).dropna().tolist()
    of_steps = steps.query("outcome == 'held'")["users"]
    assert held == ([of_steps.max()] if len(of_steps) else [])
    # The proxy's count was reset after the search, so it is of the trial's own load.
    assert trial["server_count"] <= len(run.requests(None, [trial["trial_id"]]))
