"""Runs against runs: which can be compared, and what counts as worse."""

from __future__ import annotations

import numpy as np
import pytest

from perflab.analysis.between_runs import RunComparison, compare_runs, compared
from perflab.analysis.run_sides import times_apart
from perflab.recordings import Reason, Response, Run
from perflab.recordings.design import Design
from perflab.recordings.responses import COMMON, lower_end_column
from perflab.reports.verdicts import comparison_text
from tests.support.planted_trial import Planted
from tests.support.simulations.run_drift import false_alarms
from tests.support.synthetic import ON_AND_OFF, write_run

Sides = tuple[list[Run], list[Run]]
# Every run of the same code has a level of its own; its trials scatter around it.
TRIALS, NOISE = 8, 0.05


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    """Return three runs, and three runs of a slower service, measured in turn."""
    root = tmp_path_factory.mktemp("sides")
    slower = tuple(Planted(p.levels, p.ratio * 0.7, p.label) for p in ON_AND_OFF)
    options = {"block_noise": 0.02, "blocks": 4, "requests": 150}
    return (
        at_hours([write_run(root, seed=seed, **options) for seed in range(3)], 0, 3, 4),
        at_hours(
            [write_run(root, seed=3 + seed, treatments=slower, **options) for seed in range(3)],
            1, 2, 5,
        ),
    )  # fmt: skip


def changed(run: Run, **changes: object) -> Run:
    other = Run(run.path)
    other.record = run.record.model_copy(update=changes)
    return other


def at_hours(runs: list[Run], *hours: int) -> list[Run]:
    """Return runs that lasted for half an hour each, and began at these hours."""
    days = [f"2026-01-02T{hour:02d}" for hour in hours]
    spans = [{"created_at": f"{day}:00:00Z", "finished_at": f"{day}:30:00Z"} for day in days]
    return [changed(run, **span) for run, span in zip(runs, spans, strict=True)]


def side(random: np.random.Generator, runs: int) -> list[np.ndarray]:
    """Return the log responses of each run's trials."""
    levels = NOISE * random.normal(size=(runs, 1))
    return list(levels + NOISE * random.normal(size=(runs, TRIALS)))


@pytest.mark.parametrize("runs", [(3, 3), (3, 10)])
def test_equal_sides_are_called_different_in_no_more_than_one_of_twenty(
    runs: tuple[int, int],
) -> None:
    random = np.random.default_rng(1)
    ends = [compared(*(side(random, count) for count in runs))[1:3] for _ in range(500)]
    assert np.mean([low > 0 or high < 0 for low, high in ends]) <= 0.065


def test_three_slower_runs_are_worse_in_throughput_and_latency(sides: Sides) -> None:
    a, b = sides
    comparison = compare_runs(a, b)
    assert not comparison.obstacles
    assert comparison.enough
    assert set(comparison.table["verdict"]) == {"worse"}
    assert set(comparison.table["runs_b"]) == {3}
    assert len(comparison.worse(1.1)) == len(comparison.table)
    # About 1.4 times worse; the gate asks for the whole interval.
    responses = comparison.table.set_index(["treatment", "response"])
    row = responses.loc[("synchronous_commit=on", "throughput_rps")]
    assert 1 / row["high"] < row["worse_by"]
    within = (1 / row["high"] + row["worse_by"]) / 2
    assert ("synchronous_commit=on", "throughput_rps") not in set(
        comparison.worse(within)[["treatment", "response"]].itertuples(index=False, name=None)
    )
    assert comparison.worse(1.6).empty
    faster = compare_runs(b, a)
    assert set(faster.table["verdict"]) == {"better"}
    assert faster.worse(1.0).empty


def test_one_run_each_may_differ_but_is_never_worse(sides: Sides) -> None:
    a, b = sides
    comparison = compare_runs(a[:1], b[:1])
    assert set(comparison.table["verdict"]) == {"not decided: differs by trials, one run each"}
    assert comparison.worse(1.0).empty
    assert any("from run to run" in note for note in comparison.notes)
    more = compare_runs(a, b[:1])
    assert set(more.table["verdict"]) == {"not decided: differs by trials, 3 against 1 run"}


def told(runs: list[Run], monkeypatch: pytest.MonkeyPatch, values: float, step: float = 0) -> None:
    """Let every trial of the runs have a response time in steps of ``step`` ms."""
    for run in runs:
        trials = run.valid_trials().assign(mean_ms=values, mean_ms_resolution=step)
        monkeypatch.setattr(run, "compared_trials", lambda *_, trials=trials: trials)


def compared_means(a: list[Run], b: list[Run]) -> tuple[dict, RunComparison]:
    comparison = compare_runs(a, b)
    (row, *_) = comparison.table[comparison.table["response"] == "mean_ms"].to_dict("records")
    return row, comparison


def test_a_response_of_0_has_a_difference_in_place_of_a_ratio(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = sides
    told(a, monkeypatch, 0.0, 1.0)
    told(b, monkeypatch, 30.0, 1.0)
    row, comparison = compared_means(a, b)
    assert (row["scale"], row["unit"], row["verdict"]) == ("difference", "ms", "worse")
    assert row["effect"] == 30
    assert row["low"] < 29 < 31 < row["high"]
    # No factor is too large for a gate.
    assert "mean_ms" in set(comparison.worse(100)["response"])
    text = comparison_text(comparison.table).set_index("response")["B / A [95%]"]["mean_ms"]
    assert text.iloc[0].startswith("B - A: +30.0 ms [")
    assert text.iloc[0].endswith("] (no ratio: a value is 0)")
    row, comparison = compared_means(b, a)
    assert row["verdict"] == "better"
    assert "mean_ms" not in set(comparison.worse(1)["response"])


@pytest.mark.parametrize("step", [0.0, 1.0])
def test_zeros_on_both_sides_have_a_row_unless_they_are_exact(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    for side in sides:
        told(side, monkeypatch, 0.0, step)
    table = compare_runs(*sides).table
    rows = table[table["response"] == "mean_ms"]
    assert len(rows) == (2 if step else 0)
    assert (rows["verdict"] == "not decided").all()
    assert (rows["low"] <= -1).all()
    assert (rows["high"] >= 1).all()


@pytest.mark.parametrize(
    ("b_ms", "step", "verdict"), [(4, 1, "not decided"), (30, 1, "worse"), (4, 0.001, "worse")]
)
def test_times_in_whole_ms_are_worse_only_beyond_their_rounding(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, b_ms: float, step: float, verdict: str
) -> None:
    a, b = sides
    told(a, monkeypatch, 3.0, step)
    told(b, monkeypatch, b_ms, step)
    row, _ = compared_means(a, b)
    assert row["verdict"] == verdict
    assert row["low"] < b_ms / 3 < row["high"]


@pytest.mark.parametrize(("share", "is_wider"), [(0.05, False), (0.5, True), (-0.5, True)])
def test_runs_whose_times_may_be_the_clients_own_are_compared_with_any_part_of_it(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, share: float, is_wider: bool
) -> None:
    plain, _ = compared_means(*sides)
    for run in (*sides[0], *sides[1]):
        trials = run.valid_trials()
        trials = trials.assign(mean_client_ms=share * trials["mean_ms"])
        monkeypatch.setattr(run, "compared_trials", lambda *_, trials=trials: trials)
    row, _ = compared_means(*sides)
    assert row["effect"] == pytest.approx(plain["effect"])
    assert (row["low"] < 0.7 * plain["low"]) == is_wider
    assert (row["high"] > 1.4 * plain["high"]) == is_wider
    assert row["verdict"] == ("not decided" if is_wider else "worse")


def cut(run: Run, monkeypatch: pytest.MonkeyPatch, trials: int, **columns: float) -> None:
    """Take the mean of the first trials of a treatment away, and give them columns in its place."""
    table = run.trials()
    rows = table.index[table["treatment"] == ON_AND_OFF[0].name][:trials]
    table.loc[rows, ["mean_ms", *columns]] = [np.nan, *columns.values()]
    monkeypatch.setattr(run, "_trials", table)


@pytest.mark.parametrize(
    ("trials", "columns", "why"),
    [
        (1, {"mean_at_least_ms": 300.0}, "1 trial of B has only a bound"),
        (4, {"mean_at_least_ms": 300.0}, "4 trials of B have only a bound"),
        (4, {}, "1 run of B has no value"),
    ],
)
@pytest.mark.promise
def test_what_a_run_does_not_know_whole_is_not_compared_and_passes_no_gate(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, trials: int, columns: dict, why: str
) -> None:
    a, b = sides
    cut(b[0], monkeypatch, trials, **columns)
    comparison = compare_runs(a, b)
    (row,) = comparison.not_compared.to_dict("records")
    assert (row["treatment"], row["response"]) == (ON_AND_OFF[0].name, "mean_ms")
    assert row["verdict"] == f"not compared: {why}"
    text = comparison_text(comparison.table)
    assert "–" in set(text["B / A [95%]"])
    assert len(comparison.worse(1.1)) == len(comparison.table) - 1


@pytest.mark.parametrize(
    ("column", "factor", "end"),
    [("mean_at_most_ms", 2.0, "high"), (lower_end_column("mean_ms"), 0.5, "low")],
)
def test_what_a_pause_may_have_changed_is_in_the_interval(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, column: str, factor: float, end: str
) -> None:
    plain, _ = compared_means(*sides)
    for run in sides[1]:
        trials = run.trials()
        monkeypatch.setattr(run, "_trials", trials.assign(**{column: factor * trials["mean_ms"]}))
    row, _ = compared_means(*sides)
    other = "low" if end == "high" else "high"
    assert row[other] == pytest.approx(plain[other])
    assert row[end] == pytest.approx(factor * plain[end], rel=0.01)


def refused(run: Run, monkeypatch: pytest.MonkeyPatch, trials: int) -> None:
    """Refuse the first trials of a treatment."""
    table = run.trials()
    rows = table.index[table["treatment"] == ON_AND_OFF[0].name][:trials]
    table.loc[rows, "state"] = "invalid"
    monkeypatch.setattr(run, "_trials", table)


@pytest.mark.promise
def test_a_treatment_of_which_no_trial_counts_is_not_compared(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = sides
    for run in (*a, *b):
        refused(run, monkeypatch, len(run.trials()))
    (row,) = compare_runs(a, b).not_compared.to_dict("records")
    assert row["treatment"] == ON_AND_OFF[0].name
    assert row["verdict"] == "not compared: no trial of A or B counts"


@pytest.mark.promise
@pytest.mark.parametrize(("in_a", "in_b"), [(0, 2), (2, 0), (1, 1), (0, 0)])
def test_a_side_that_has_more_refused_trials_than_the_other_is_told(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, in_a: int, in_b: int
) -> None:
    a, b = sides
    refused(a[0], monkeypatch, in_a)
    refused(b[1], monkeypatch, in_b)
    told = [note for note in compare_runs(a, b).notes if note.startswith("refused: ")]
    if in_a == in_b:
        assert told == []
        return
    numbers = "none of A, 2 trials of B" if in_b else "2 trials of A, none of B"
    (note,) = told
    assert note.startswith(f"refused: {numbers} ({ON_AND_OFF[0].name}): ")


def test_failures_that_refuse_every_trial_of_a_side_are_compared(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Reason(code="server.failures", side="server", text="5% of the requests failed")
    share_failed = Response(name="failure_share", title="failures", better="less", typical=True)
    for side, share in zip(sides, (0.001, 0.05), strict=True):
        for number, run in enumerate(side):
            table = run.trials().assign(failure_share=share * (1 + number / 10))
            if share > 0.01:
                table["state"], table["reasons"] = "invalid", [[failing]] * len(table)
            monkeypatch.setattr(run, "_trials", table)
            record = run.record.model_copy(update={"responses": [*COMMON, share_failed]})
            monkeypatch.setattr(run, "record", record)
    comparison = compare_runs(*sides)
    assert set(comparison.worse(1.1)["response"]) == {"failure_share"}
    assert set(comparison.not_compared["verdict"]) == {"not compared: B has no value"}


def test_runs_of_different_designs_are_not_compared(sides: Sides) -> None:
    (a, *_), (b, *_) = sides
    other = changed(b, design=Design(kind="slices", slice_ms=50.0))
    (text,) = compare_runs([a], [other]).obstacles
    assert text == "A was measured in trials, B in slices; measure both with -p design=trials"


def test_two_loads_on_a_side_decide_nothing(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    (a, *_), (b, *_) = sides
    for run in (a, b):
        two = run.valid_trials().groupby("treatment").head(2)
        monkeypatch.setattr(run, "compared_trials", lambda *_, two=two: two)
    assert set(compare_runs([a], [b]).table["verdict"]) == {"not decided: fewer than 3 on a side"}


def test_runs_of_different_experiments_backends_or_parameters_are_not_compared(
    sides: Sides,
) -> None:
    (a, a2, *_), (b, *_) = sides
    other = changed(b, experiment="sync_vs_async")
    assert "'sync_vs_async'" in compare_runs([a], [other]).obstacles[0]
    other = changed(b, backend="docker")
    assert "docker" in compare_runs([a], [other]).obstacles[0]
    other = changed(b, parameters={**b.record.parameters, "seed": 7, "driver": "x"})
    (text,) = compare_runs([a], [other]).obstacles
    assert text == "parameter driver is 'psycopg2' in A and 'x' in B"
    # Runs of one side are checked too.
    (text,) = compare_runs([a, other], [a2]).obstacles
    assert "in A1 and 'x' in A2" in text


@pytest.mark.parametrize(
    ("order", "alternates"),
    [
        ("ABBAAB", True),
        ("ABABAB", True),
        ("BAABBAA", True),
        ("AAABBB", False),
        ("AABBBBAA", False),
        ("ABAABB", False),
        ("ABABABBB", False),
        ("AB", False),
    ],
)
def test_runs_alternate_if_every_two_of_them_are_one_of_each_side(
    order: str, alternates: bool
) -> None:
    a, b = ([at for at, name in enumerate(order) if name == side] for side in "AB")
    words = times_apart(a, b)
    assert (words == "") == alternates
    if not alternates:
        assert f"measured at different times ({' '.join(order)})" in words
        assert "A B B A A B" in words


def test_runs_that_lie_apart_in_time_are_neither_better_nor_worse(sides: Sides) -> None:
    a, b = at_hours(sides[0], 0, 1, 2), at_hours(sides[1], 3, 4, 5)
    for comparison in (compare_runs(a, b), compare_runs(b, a)):
        assert set(comparison.table["verdict"]) == {"not decided: measured at different times"}
        assert comparison.worse(1.0).empty
        assert comparison.notes[0] == comparison.apart
        # The numbers stay.
        assert comparison.table["effect"].notna().all()


def test_a_run_that_was_resumed_later_counts_in_the_middle_of_its_time(sides: Sides) -> None:
    a, b = at_hours(sides[0], 0, 3, 4), at_hours(sides[1], 1, 2, 5)
    late = changed(a[0], finished_at="2026-01-03T00:00:00Z")
    assert compare_runs(a, b).apart == ""
    assert "(B B A A B A)" in compare_runs([late, *a[1:]], b).apart


@pytest.mark.parametrize("shape", ["linear", "settling"])
def test_a_drift_makes_runs_that_alternate_certain_in_no_more_than_one_of_twenty(
    shape: str,
) -> None:
    random = np.random.default_rng(2)
    for order in ("ABBAAB", "ABABAB"):
        assert false_alarms(random, order, shape, drift=0.5, noise=0.02, sets=60).hits <= 3
    # The numbers alone would be certain.
    assert false_alarms(random, "AAABBB", "linear", 0.5, 0.02, sets=20).hits > 10
