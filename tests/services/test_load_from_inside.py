"""Trials of the registry whose load comes from inside: a few downloads, real services."""

from __future__ import annotations

import pytest

from perflab import api
from perflab.recordings import Run
from perflab.stacks import cleanup

pytestmark = pytest.mark.slow
CLIENTS = 5
# 0.25 s each over the link: one after the other they take 1.25 s.
SMALL = {
    "sets": ["inside"], "blocks": 1, "clients": CLIENTS, "model_bytes": 200_000, "timeout_s": 20.0,
    "models": 2, "seed": 3,
}  # fmt: skip
RUNGS = ("step_0_inside", "step_3_inside")


@pytest.fixture(scope="module")
def run() -> Run:
    return api.run("registry_downloads", {**SMALL, "rungs": RUNGS, "backend": "process"})


def test_what_the_services_own_generator_tells_is_recorded_beside_the_labs_probes(run: Run) -> None:
    trials = run.trials().set_index("factor_rung")
    assert set(trials.index) == set(RUNGS)
    for name in RUNGS:
        row = trials.loc[name]
        told = [reason for reason in row["reasons"] if "other_load" in str(reason.code)]
        assert (row["state"] != "failed", told) == (True, []), row["reasons"]
        assert row["told_succeeded"] == CLIENTS
        assert row["told_total_duration_s"] > 0.2
    # The lab's own columns of downloads are not filled with what it did not count.
    assert not {"succeeded", "mean_ms", "phase_app_p50_ms"} & set(trials.dropna(axis=1, how="all"))
    table = run.table("other_load", list(trials["trial_id"]))
    assert (table.groupby("trial_id").size() == CLIENTS).all()
    assert (set(table["outcome"]), set(table["bytes"])) == ({"done"}, {200_000.0})
    # Probes are small; one waits while a download holds the loop up, a quarter of a second each.
    probes = run.requests(trial_ids=[trials.loc["step_0_inside", "trial_id"]])
    assert probes["bytes"].max() < 1_000
    assert (probes["done_ns"] - probes["planned_ns"]).max() / 1e9 > 0.2
    assert cleanup.everything() == []
