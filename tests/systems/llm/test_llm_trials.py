"""Streams through the real proxy, from a plan to the recording: every chunk, every failure."""

from __future__ import annotations

import pytest

from perflab import laboratory
from perflab.recordings import Run

# Started side by side on a machine that is busy, services may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TOKENS = 8
SMALL = {
    "blocks": 1, "seed": 1, "fresh_blocks": 0, "users": 10, "duration_s": 1.5, "warmup_s": 0.5,
    "interval_s": 0.5, "tokens": TOKENS, "limits": [96], "stress_users": 120, "ramp_s": 4.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(backend_name: str) -> Run:
    parameters = {**SMALL, "backend": backend_name, "sets": ["unpaced", "limits"]}
    return laboratory.run("llm_streaming", parameters)


def test_every_token_of_every_stream_is_a_chunk_of_the_recording(run: Run) -> None:
    trials = run.trials()
    assert set(trials["state"]) <= {"valid", "invalid"}
    paced = trials[trials["factor_pacing"] == "0.5 s"]["trial_id"].tolist()
    requests, chunks = run.requests(None, paced), run.chunks(paced)
    good = requests[requests["error"] == ""]
    key = ["trial_id", "worker", "user", "planned_ns"]
    own = chunks.merge(good[key], on=key)
    # The last chunk says why the answer ends; the end marker is none.
    assert (own[~own["is_end"]].groupby(key).size() == TOKENS + 1).all()
    assert (own[own["is_end"]].groupby(key).size() == 1).all()
    assert len(good) == own[key].drop_duplicates().shape[0]


def test_trials_have_times_of_chunks_and_what_they_cost(run: Run) -> None:
    trials = run.trials()
    for column in ("first_chunk_p50_ms", "chunks_per_s", "server_cpu_us_per_chunk",
                   "server_count"):  # fmt: skip
        own = trials[trials["factor_max_files"] == "enough"]
        assert (own.loc[own["factor_pacing"] != "none", column] > 0).all(), column


def test_a_proxy_with_few_descriptors_fails_and_ends_the_load(run: Run) -> None:
    own = run.trials().query("factor_max_files == '96'")
    assert len(own) == 2
    assert (own["reached_failures"] == 1).all()
    assert (own["users_at_stop"] < 120).all()
    assert (own["failures_until_stop"] >= 5).all()
    failed = run.requests(None, own["trial_id"].tolist()).query("error != ''")
    # The proxy says itself what it lacks, or cannot even take the connection.
    assert set(failed["error"]) <= {"status", "timeout", "unsent", "reset", "closed"}
    assert (failed.query("error == 'status'")["status"] == 503).all()


def test_a_trial_searches_the_users_that_hold_and_its_own_load_is_counted_apart(
    backend_name: str,
) -> None:
    wide = {"objectives": ["ttft_p95<30s"], "search_most": 45, "probe_s": 1.0}
    parameters = {**SMALL, **wide, "backend": backend_name, "sets": ["capacity"]}
    run = laboratory.run("llm_streaming", parameters)
    trials = run.trials()
    assert set(trials["state"]) <= {"valid", "invalid"}
    every = trials["trial_id"].tolist()
    steps = run.table("capacity_steps", every)
    assert set(steps["outcome"]) <= {"held", "refused", "missed"}
    assert set(steps["users"]) <= set(range(1, 46))
    # An objective that nothing misses: what was held is a bound, by the range or by the client.
    held = steps[steps["outcome"] == "held"].groupby("trial_id")["users"].max()
    told = trials.set_index("trial_id")["users_held_at_least"].dropna()
    assert (told == held.reindex(told.index)).all()
    # The proxy's count is that of the trial's own load: it forgot the steps.
    own = run.requests(None, every).groupby("trial_id").size()
    assert (trials.set_index("trial_id")["server_count"] <= own).all()
