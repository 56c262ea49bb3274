"""Profiled runs: call chains of the service, with watched functions, and none when off."""

from __future__ import annotations

import pytest

from perflab.paths import runs_dir
from perflab.recordings import Run
from perflab.stacks import cleanup
from perflab.trials.client import conduct
from perflab.trials.plan import Order
from tests.systems.planned import plan_of

pytestmark = pytest.mark.alone

# The load and the rate give a dozen samples of compressing, which takes a few percent.
SMALL = {
    "blocks": 1, "codec": ["json"], "deflate": ["on"], "users": 45, "action_s": 0.1,
    "join_s": 0.01, "plateau_s": 1.0, "rate_hz": 400, "seed": 3,
}  # fmt: skip


@pytest.mark.slow
def test_the_profiler_sees_the_service_on_each_backend(backend_name: str) -> None:
    plan = plan_of("profile", **SMALL)
    run = Run(conduct(Order(plan=plan, backend=backend_name, runs=runs_dir()), lambda _: None))
    trials = run.trials().set_index("factor_profiler", drop=False)
    assert set(trials["state"]) <= {"valid", "invalid"}
    assert (trials["messages_sent"] > 45).all()
    chains = run.table("calls", list(trials["trial_id"]))
    assert set(chains["trial_id"]) == {trials.at["on", "trial_id"]}
    assert 10 < chains["samples"].sum() < trials.at["on", "profiler_looks"]
    waits = chains["chain"].str.endswith("select (selectors.py)")
    assert chains.loc[waits, "samples"].sum() < 0.5 * chains["samples"].sum()
    assert chains["chain"].str.contains(r"\((?:chat/)?hub\.py\)").any()
    assert trials.at["on", "cpu_share_profiler"] > 0
    assert trials["cpu_share_profiler"].isna().to_dict() == {"on": False, "off": True}
    trial = trials.loc["on"]
    shares = {name: trial[f"profile_{name}_share"] for name in ("send", "deflate", "serialize")}
    # Compressing is a part of sending, also in a chain that changed while it was read.
    assert 0 < shares["deflate"] <= shares["send"] < 1
    assert 0 <= shares["serialize"] < 1 - shares["send"]
    assert 1 < trial["profile_send_us_per_message"] < 1000
    assert not [text for text in trial["warnings"] if "'send'" in text or "'deflate'" in text]
    assert trials.loc["off"].filter(like="profile_").isna().all()
    assert cleanup.everything() == []
