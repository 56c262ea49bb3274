"""Every plot draws the data of a run, says which are missing, and cuts off no words."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import perflab
from perflab.analysis.accounts.profiles import function_shares
from perflab.analysis.evaluation import evaluate
from perflab.figures import EFFECT, FLUSH_COST, LATENCY_ECDF, THROUGHPUT, TIME_BREAKDOWN
from perflab.figures.origin import page_of, typical_rows
from perflab.figures.plots import time_breakdown
from perflab.figures.plots.profile import MOST_FUNCTIONS
from perflab.figures.plots.rates import rate_table
from perflab.figures.theme import luminance
from perflab.figures.view import draw_table, reread
from perflab.recordings import Run
from perflab.reports.figures import save_all
from perflab.reports.section import write_section
from tests.figures.conftest import VIEWS
from tests.figures.shown import (
    all_words,
    cut_off,
    one_line,
    overlapping,
    picture,
    pictures,
    shown_texts,
)
from tests.support.planted_trial import Planted
from tests.support.synthetic import contrast_of, profiled_run, variants, write_run

SMALLEST_PT = 6.0


@pytest.mark.slow
@pytest.mark.parametrize("case", VIEWS)
def test_every_run_has_the_figures_of_its_kind_with_their_words_whole_and_apart(
    case, request
) -> None:
    run = request.getfixturevalue(case)
    record = run.record
    origin = (run.run_id, record.backend, f"seed {record.seed}", "commit")
    assert list(pictures(run)) == VIEWS[case]
    for figure in pictures(run).values():
        assert cut_off(figure) == []
        assert overlapping(figure) == []
        words = one_line(figure)
        assert all(part in words for part in (*origin, "valid trial"))
        assert min(text.get_fontsize() for text in shown_texts(figure)) >= SMALLEST_PT


@pytest.mark.parametrize(("requests", "marked"), [(40, [0.5]), (100, [0.5, 0.95]), (
    400, [0.5, 0.95, 0.99])])  # fmt: skip
def test_only_percentiles_that_every_trial_supports_are_marked(tmp_path, requests, marked) -> None:
    # A p95 needs 72 responses of a trial, a p99 needs 368.
    table = LATENCY_ECDF.table(write_run(tmp_path, requests=requests, blocks=2))
    marks = table[table["curve"] == "median of trials"]
    for _, rows in marks.groupby("treatment"):
        assert list(rows["share_done"]) == marked


def test_where_one_trial_has_only_a_bound_no_figure_marks_a_typical_value_of_the_others(
    tmp_path, monkeypatch
) -> None:
    cut, whole = (
        Planted({"service": name, "rate": "100"}, label=f"{name}, 100/s")
        for name in ("cut", "whole")
    )
    run = write_run(tmp_path, treatments=[cut, whole], contrasts=[])
    trials = run.trials()
    first = trials.index[trials["treatment"] == cut.name][0]
    trials.loc[first, ["p95_ms", "p95_at_least_ms"]] = [math.nan, 300.0]
    monkeypatch.setattr(Run, "trials", lambda _: trials.copy())
    assert list(typical_rows(run, "p95_ms")["treatment"]) == [whole.name]
    rates = rate_table(run, {"p95_ms": "p95"})
    assert set(rates.loc[rates["what"] == "median", "series"]) == {"whole"}
    ecdf = LATENCY_ECDF.table(run)
    marks = ecdf[(ecdf["curve"] == "median of trials") & (ecdf["share_done"] == 0.95)]
    assert list(marks["treatment"]) == [whole.name]


def lines_of(figure: Figure, gid: str) -> list[Line2D]:
    """Return the lines of a kind in the first panel of a figure."""
    return [line for line in figure.axes[0].lines if line.get_gid() == gid]


def test_published_means_of_an_older_table_are_no_part_of_a_response(normal) -> None:
    table = TIME_BREAKDOWN.table(normal)
    whole = table[table["part"] == time_breakdown.WHOLE_RESPONSE]
    older = pd.concat([table, whole.assign(part="published", mean_ms=1e4)], ignore_index=True)
    drawn = draw_table(TIME_BREAKDOWN, reread(older), page_of(normal))
    assert all_words(drawn) == all_words(picture(TIME_BREAKDOWN, normal))


def test_trials_that_do_not_count_are_explained_where_there_are_any(normal, single) -> None:
    words = all_words(picture(THROUGHPUT, normal))
    assert "invalid trial" in words
    assert "failed trial" in words
    assert "hollow" in all_words(picture(FLUSH_COST, normal))
    assert "hollow" not in all_words(picture(FLUSH_COST, single))


def block_lines(run: Run) -> list[set[tuple[str, int]]]:
    """Return the treatments and blocks that each line of the throughput figure joins."""
    collections = picture(THROUGHPUT, run).axes[0].collections
    (lines,) = (item for item in collections if isinstance(item, LineCollection))
    where = {
        f"{row['throughput_rps']:.6g}": (row["treatment"], row["block"])
        for row in THROUGHPUT.table(run).query("what == 'trial'").to_dict("records")
    }
    return [{where[f"{x:.6g}"] for x, _ in line} for line in lines.get_segments()]


def test_block_lines_join_only_what_a_claim_compares(tmp_path) -> None:
    treatments = variants(5)
    pairs = [(0, 3), (1, 4)]
    claims = [contrast_of(treatments[b], treatments[a]) for a, b in pairs]
    run = write_run(
        tmp_path, treatments=treatments, blocks=3, requests=20, contrasts=claims, invalid={(1, 4)}
    )
    name = [treatment.name for treatment in treatments]
    expected = [
        {(name[a], block), (name[b], block)}
        for block in range(3)
        for a, b in pairs
        if (block, b) != (1, 4)
    ]
    lines = block_lines(run)
    assert len(lines) == len(expected)
    assert all(pair in lines for pair in expected)


def test_a_single_trial_is_a_point_without_a_line(single) -> None:
    axes = picture(THROUGHPUT, single).axes[0]
    assert [len(line.get_xdata()) for line in axes.lines] == []
    assert "one trial" in all_words(picture(THROUGHPUT, single))
    curves = picture(LATENCY_ECDF, single)
    assert (len(lines_of(curves, "trial")), lines_of(curves, "pooled")) == (1, [])
    bars = picture(TIME_BREAKDOWN, single)
    assert not lines_of(bars, "interval")
    assert "one trial" in all_words(bars)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("all_failed", "No trial of the run is valid (12 failed: service 'postgres': died"),
        ("empty", "The run has no trial: it is interrupted."),
    ],
)
def test_an_empty_figure_says_in_a_sentence_why(case, words, request) -> None:
    figures = pictures(request.getfixturevalue(case))
    for name in ("throughput", "latency_ecdf", "time_breakdown", "latency_cpu"):
        assert words in one_line(figures[name])
        assert cut_off(figures[name]) == []


def test_parts_that_may_lie_side_by_side_differ_in_greyscale() -> None:
    known = {part: luminance(color) for part, color in time_breakdown.COLORS.items()}
    assert all(abs(a - b) > 0.05 for a, b in combinations(known.values(), 2))
    phases = [luminance(color) for color in time_breakdown.OF_PHASES]
    ends = [known["queue and other"], *phases, known[time_breakdown.REST]]
    assert all(abs(a - b) > 0.12 for a, b in pairwise([*ends[:-1], *phases[:1]]))
    assert all(abs(value - ends[-1]) > 0.05 for value in phases)


def test_a_breakdown_has_six_parts_and_the_others_together(normal) -> None:
    table = TIME_BREAKDOWN.table(normal)
    drawn = time_breakdown._with_few_parts(table)
    parts = [part for part in drawn["part"].unique() if part != time_breakdown.WHOLE_RESPONSE]
    assert len(parts) == time_breakdown.MOST_PARTS + 1
    assert time_breakdown.OTHERS in all_words(picture(TIME_BREAKDOWN, normal))
    sums = [
        rows[rows["part"] != time_breakdown.WHOLE_RESPONSE]["mean_ms"].sum()
        for rows in (table, drawn)
    ]
    assert sums[0] == pytest.approx(sums[1])


def test_many_treatments_keep_their_words_apart(tmp_path) -> None:
    treatments = [
        Planted({"variant": str(n)}, 1.0, f"{'a long name of a treatment, ' * 3}variant = {n}")
        for n in range(20)
    ]
    claims = [contrast_of(treatment, treatments[0]) for treatment in treatments[1:]]
    run = write_run(tmp_path, treatments=treatments, blocks=1, requests=5, contrasts=claims)
    for view in (EFFECT, THROUGHPUT, TIME_BREAKDOWN):
        figure = picture(view, run)
        assert cut_off(figure) == []
        assert overlapping(figure) == []


BEFORE = {"main (run.py);dumps (json.py)": 400, "main (run.py);write (hub.py)": 600}
AFTER = {"main (run.py);dumps (json.py)": 200, "main (run.py);write (hub.py)": 600}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return profiled_run(
        tmp_path, {"a": BEFORE, "b": AFTER}, noise=0.03, seen_share={"a": 0.5, "b": 0.4}
    )


def test_a_function_that_only_one_treatment_has_takes_no_time_in_the_other(tmp_path: Path) -> None:
    many = {f"f{number} (x.py)": 10 + number for number in range(2 * MOST_FUNCTIONS)}
    run = profiled_run(tmp_path, {"a": many, "b": {"g (x.py)": 500}}, blocks=1)
    table = function_shares(run, MOST_FUNCTIONS)
    assert table["function"].nunique() == MOST_FUNCTIONS
    shares = table[table["function"] == "g (x.py)"].set_index("treatment")
    assert shares["percent"].to_dict() == pytest.approx({"variant=a": 0, "variant=b": 50})
    assert shares["low"].isna().all()
    assert perflab.draw(run, "profile").axes


def test_the_call_chains_of_all_trials_are_saved_for_speedscope_and_linked(
    run: Run, tmp_path: Path
) -> None:
    saved = save_all(run, tmp_path / run.run_id)
    (chains,) = (path for path in saved if path.suffix == ".txt")
    lines = chains.read_text().splitlines()
    calls = run.table("calls")
    assert len(lines) == len(calls[["treatment", "chain"]].drop_duplicates())
    assert {line.partition(";")[0] for line in lines} == {"variant=a", "variant=b"}
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == calls["samples"].sum()
    section = write_section(run, evaluate(run), tmp_path, saved).read_text()
    assert f"[call chains for speedscope](<{run.run_id}/profile.txt>)" in section
