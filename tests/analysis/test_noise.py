"""The noise report flags what may have mattered, and drops no trial."""

from __future__ import annotations

import pandas as pd
import pytest

from perflab.analysis.noise import noise_flags, noise_report
from perflab.recordings import Run
from perflab.recordings.columns import TURN_COLUMNS, TURNS
from tests.support.synthetic import write_run


def test_trials_that_do_not_count_are_flagged(tmp_path) -> None:
    run = write_run(tmp_path, invalid=[(0, 0), (1, 1)], failed=[(2, 0)])
    table = noise_report(run).set_index("what")
    assert table.at["trials that do not count", "value"] == "3 of 12"
    assert table.at["trials that do not count", "flag"]


def test_flags_have_a_few_words_with_their_numbers(tmp_path) -> None:
    run = write_run(tmp_path)
    assert noise_flags(run) == ()
    trials = run.trials()
    trials["cpu_probe_before_ms"] = 5.0 * (1 + 0.5 * (trials["block"] > 2))
    trials["flush_p50_us"] = 50.0 * (1 + trials["block"])
    trials["steal_share"] = 0.02
    trials["client_real_time"] = 0
    run._trials = trials
    environment = {"machine": {"cores": 1}, "turbo": "on"}
    environment |= {"governor": "powersave", "clock_source": "hpet"}
    run.record = run.record.model_copy(
        update={"environment": environment, "placement": {"services": [0], "client": [0]}}
    )
    assert noise_flags(run) == (
        "CPU governor powersave",
        "turbo on",
        "clock source hpet",
        "client and services share a core",
        "other guests took 2% of the CPU (steal)",
        "speed changed 1.5x",
        "flush cost changed 6x",
        "client without real-time priority",
    )


@pytest.mark.parametrize(
    ("factors", "told"),
    [((1.4, 1.4), True), ((0.6, 0.6), True), ((1.4, 1.0), False), ((1.1, 1.1), False)],
)
def test_a_first_block_that_is_another_thing_in_all_treatments_is_told(
    tmp_path, factors: tuple[float, float], told: bool
) -> None:
    run = write_run(tmp_path, block_noise=0.01, noise=0.01)
    trials = run.trials()
    for treatment, factor in zip(sorted(trials["treatment"].unique()), factors, strict=True):
        trials.loc[(trials["block"] == 0) & (trials["treatment"] == treatment), "mean_ms"] *= factor
    run._trials = trials
    flags = [flag for flag in noise_flags(run) if flag.startswith("block 1 took ")]
    assert len(flags) == told
    assert len(run.valid_trials()) == len(trials), "nothing is dropped"


def test_treatments_that_share_their_time_are_no_strangers_to_each_other(tmp_path) -> None:
    run = write_run(tmp_path, blocks=2, noise=0.0)
    trials = run.trials()
    # Both trials of a block ran at the same time, so a core's busy time is that of both.
    first = trials[trials["position"] == 0].set_index("block")
    for name in ("begin_ns", "end_ns"):
        trials[name] = trials["block"].map(first[name])
    run._trials = trials
    spans = trials.set_index("trial_id")
    cores = [f"core {core}" for core in sorted(placed(run))]

    def samples_of(name: str) -> pd.DataFrame:
        """Return samples: a service and its client use a quarter of a core each, the lab none."""
        begin_ns, end_ns = spans.at[name, "begin_ns"], spans.at[name, "end_ns"]
        length_ns = end_ns - begin_ns
        used = {"shop": length_ns / 4, "client": length_ns / 4, "lab": 0.0}
        used |= dict.fromkeys(cores, 2 * length_ns / 2 / len(cores))
        rows = [
            (name, at, service, cpu_ns, 0)
            for service, whole in used.items()
            for at, cpu_ns in ((begin_ns, 0), (end_ns, whole))
        ]
        return pd.DataFrame(rows, columns=["trial_id", "t_ns", "service", "cpu_ns", "memory_bytes"])

    run.table = lambda _, names: pd.concat(map(samples_of, names), ignore_index=True)
    assert any("others used" in flag for flag in noise_flags(run))
    run.record = run.record.model_copy(update={"tables": {TURNS: dict(TURN_COLUMNS)}})
    assert not any("others used" in flag for flag in noise_flags(run))


def placed(run: Run) -> set[int]:
    return {
        core
        for role, cores in run.record.placement.items()
        if role != "shared" and isinstance(cores, list | tuple)
        for core in cores
    }
