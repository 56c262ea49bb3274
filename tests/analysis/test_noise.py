"""The noise report flags what may have mattered, and a table says why trials do not count."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from perflab.analysis import noise
from perflab.analysis.answers import answers_of
from perflab.analysis.decision import FRESH_RUN, QUIET_FIRST
from perflab.analysis.evaluation import evaluate
from perflab.analysis.noise import noise_flags, share_of_others
from perflab.analysis.validity import NOT_MEASURED, TOO_FEW, validity_table, why_unmeasured
from perflab.figures.plots.effects import effect_row
from perflab.recordings import Reason, Remark, Response, Run
from perflab.recordings.columns import TURN_COLUMNS, TURNS
from perflab.reports.answer_page import answer_page
from perflab.reports.methods import first_said
from perflab.trials.plan import Target
from tests.support.planted_trial import Planted
from tests.support.synthetic import ON_AND_OFF, UNPUBLISHED, contrast_of, write_run


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
    keep_busy(run, 1.0)
    assert any("others used" in flag for flag in noise_flags(run))
    run.record = run.record.model_copy(update={"tables": {TURNS: dict(TURN_COLUMNS)}})
    assert not any("others used" in flag for flag in noise_flags(run))


@pytest.mark.parametrize(("used", "marked"), [(0.2, False), (0.6, True)])
@pytest.mark.promise
def test_an_answer_beside_much_other_work_is_marked_wherever_it_stands_first(
    tmp_path, used: float, marked: bool
) -> None:
    asked = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], asks="off faster?", subject="requests/s")
    run = write_run(tmp_path, blocks=6, contrasts=[asked])
    keep_busy(run, 0.5 + used * len(placed(run)))
    (answer,) = answers_of(run, evaluate(run))
    text = f"others used {used:.0%} of the cores meanwhile: repeat it on a quiet machine"
    assert answer.doubt == text * marked
    assert answer.text.startswith("yes, as published: +"), "it is an answer all the same"
    assert (
        text in answer_page("", [(answer, tmp_path / "it.ipynb", ["effect"])], tmp_path)
    ) == marked
    assert (f"Doubtful: {text}." in first_said(run)) == marked


def test_the_figure_of_a_loaded_machine_names_no_number_of_blocks(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contrast = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], **UNPUBLISHED)
    alike = [Planted(item.levels) for item in ON_AND_OFF]
    run = write_run(tmp_path, treatments=alike, noise=0.1, contrasts=[contrast])
    (quiet,) = evaluate(run)
    assert effect_row(quiet)["reason"].startswith(FRESH_RUN)
    monkeypatch.setattr(noise, "share_of_others", lambda _: 0.6)
    (busy,) = evaluate(run)
    assert effect_row(busy)["reason"] == QUIET_FIRST


def keep_busy(run: Run, busy: float) -> None:
    """Give a run samples: a service and its client use a quarter of a core each, the lab none.

    All cores together are ``busy`` cores busy.
    """
    spans = run.trials().set_index("trial_id")
    cores = [f"core {core}" for core in sorted(placed(run))]

    def samples_of(name: str) -> pd.DataFrame:
        begin_ns, end_ns = spans.at[name, "begin_ns"], spans.at[name, "end_ns"]
        length_ns = end_ns - begin_ns
        used = {"shop": length_ns / 4, "client": length_ns / 4, "lab": 0.0}
        used |= dict.fromkeys(cores, busy * length_ns / len(cores))
        # The samples hold every core of the machine, also those that the lab leaves alone.
        used[f"core {max(placed(run)) + 1}"] = length_ns
        rows = [
            (name, at, service, cpu_ns, 0)
            for service, whole in used.items()
            for at, cpu_ns in ((begin_ns, 0), (end_ns, whole))
        ]
        return pd.DataFrame(rows, columns=["trial_id", "t_ns", "service", "cpu_ns", "memory_bytes"])

    run.table = lambda _, names: pd.concat(map(samples_of, names), ignore_index=True)


def placed(run: Run) -> set[int]:
    return {
        core
        for role, cores in run.record.placement.items()
        if role != "shared" and isinstance(cores, list | tuple)
        for core in cores
    }


def test_a_service_that_the_lab_did_not_start_is_not_taken_for_others(tmp_path: Path) -> None:
    run = write_run(tmp_path, blocks=6)
    keep_busy(run, 1.5)
    assert share_of_others(run) > 0
    url, parts = "http://shop:8000", {"target": "t"}
    for is_here in (True, False):
        treatments = [item.model_copy(update={"parts": parts}) for item in run.record.treatments]
        target = {"t": Target(url=url, is_here=is_here).model_dump()}
        run.record = run.record.model_copy(update={"treatments": treatments, "parts": target})
        assert math.isnan(share_of_others(run)) == is_here


@pytest.mark.promise
def test_a_store_that_the_user_named_is_not_taken_for_others_and_counts_once(
    tmp_path: Path,
) -> None:
    run = write_run(tmp_path, blocks=6)
    keep_busy(run, 1.5)
    others, table = share_of_others(run), run.table
    count = len(placed(run))

    def with_store(name: str, names: list[str]) -> pd.DataFrame:
        rows = table(name, names)
        shop = rows[rows["service"] == "shop"]
        return pd.concat([rows, shop.assign(service="shared 127.0.0.1:5432")])

    run.table = with_store
    run.record = run.record.model_copy()
    # Of its quarter of a core as much ran on the lab's cores as they have of the busy time.
    expected = 0.25 * (1.5 / 2.5) / count
    assert share_of_others(run) == pytest.approx(others - expected)
    # In slices all trials of a block have samples of the same store.
    used = {"core 0": 9e6, "shared 127.0.0.1:5432": 4e6}
    rows = [(at, name, cpu) for name, whole in used.items() for at, cpu in ((0, 0), (10, whole))]
    both = pd.DataFrame(rows, columns=["t_ns", "service", "cpu_ns"])
    assert noise._foreign_ns({"a": both, "b": both}, 0, 10, {0}) == 9e6 - 4e6


LATE = "generator lag p50 {} ms is above 2.0 ms: the client, not the server, was late"


def late(text: str) -> Reason:
    return Reason(code="generator.late", side="client", text=text)


def other(text: str, code: str = "machine.cores") -> Reason:
    return Reason(code=code, text=text)


def reasons(root: Path, *by_trial: list[Reason]) -> str:
    run = write_run(root, invalid={(block, 0) for block in range(len(by_trial))}, requests=40)
    trials = run.trials()
    bad = list(trials.index[trials["state"] == "invalid"])
    for index, of_trial in zip(bad, by_trial, strict=True):
        trials.at[index, "reasons"] = of_trial
    run._trials = trials
    return str(validity_table(run)["reason"].iloc[0])


def test_equal_reasons_appear_once_with_the_range_of_their_numbers(tmp_path) -> None:
    text = reasons(tmp_path, *([late(LATE.format(ms))] for ms in ("5.31", "3.2", "11.0")))
    assert text == (
        "generator lag p50 3.2 to 11.0 ms is above 2.0 ms: the client, not the server, was late "
        "(3 trials)"
    )


def test_every_reason_appears_the_most_frequent_first(tmp_path) -> None:
    text = reasons(
        tmp_path,
        [other("2 requests failed", "load.failed"), other("no core for 31% of the time")],
        [other("no core for 45% of the time")],
    )
    assert text == "no core for 31 to 45% of the time (2 trials); 2 requests failed (1 trial)"


def test_reasons_of_one_code_are_one_kind_whatever_their_words(tmp_path) -> None:
    """A trial with two such reasons counts once, and the most frequent wording is shown."""
    p50, p99 = "generator lag p50 3 ms", "generator lag p99 {} ms"
    text = reasons(
        tmp_path, [late(p50), late(p99.format(20))], [late(p99.format(30))], [late("2 early")]
    )
    assert text == "generator lag p99 20 to 30 ms, or alike (3 trials)"


@pytest.mark.promise
def test_a_process_that_was_not_measured_takes_no_times_of_a_request_named_cpu() -> None:
    remark = Remark(code=NOT_MEASURED, side="server", text="nothing was read of the service")
    for name, why in (("of_cpu_mean_ms", TOO_FEW), ("cpu_us_per_request", remark.text)):
        trials = pd.DataFrame([{name: math.nan, "warnings": [remark]}])
        told = why_unmeasured(trials, Response(name=name, title="it"))
        assert told.startswith(f"no it from 1 of 1 valid trial: {why}")


def test_only_the_first_line_of_a_reason_appears(tmp_path) -> None:
    died = "service 'postgres': it was killed\nits last log lines:\nPostgreSQL 15.8"
    assert reasons(tmp_path, [other(died)]) == "service 'postgres': it was killed (1 trial)"
