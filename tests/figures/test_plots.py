"""Every plot draws what a run has, says what it lacks, and keeps its words inside."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise

import pytest
from matplotlib.collections import LineCollection
from scipy import stats

from perflab.figures import PLOTS, draw_all
from perflab.figures.looks import luminance
from perflab.figures.origin import n_text, valid_counts
from perflab.figures.plots import (
    flush_cost,
    latency_cpu,
    latency_ecdf,
    throughput,
    time_breakdown,
)
from perflab.recordings import Run
from perflab.systems.chat.figures import codec_cost
from perflab.systems.lab.figures import client_cost
from tests.figures.shown import all_words, cut_off, one_line, overlapping
from tests.figures.studies import OF_ONE_STUDY
from tests.synthetic import APP_SHARE, Planted, contrast_of, variants, write_run

once = cache(draw_all)


@pytest.mark.parametrize(
    "case", ["normal", "all_failed", "single", "no_database", "eight", "empty"]
)
def test_every_plot_draws_every_kind_of_run(case, request) -> None:
    run = request.getfixturevalue(case)
    drawn = once(run)
    assert set(drawn) >= {"throughput", "latency_ecdf", "time_breakdown", "latency_cpu"}
    for name in drawn:
        assert len(PLOTS[name].table(run)) <= 500


WITHOUT_FLUSHES = {(case, "flush_cost") for case in ("all_failed", "codecs", "copies")}


@pytest.mark.parametrize("case", ["normal", "all_failed", "eight", "clients", "codecs", "copies"])
@pytest.mark.parametrize("name", PLOTS)
def test_no_text_is_cut_off_or_overlaps(case, name, request) -> None:
    figure = once(request.getfixturevalue(case)).get(name)
    if figure is None:
        assert OF_ONE_STUDY.get(name) != case
        assert name in OF_ONE_STUDY or (case, name) in WITHOUT_FLUSHES
        return
    assert cut_off(figure) == []
    assert overlapping(figure) == []


@pytest.mark.parametrize("name", PLOTS)
def test_every_figure_names_its_experiment_and_states_its_origin(normal, request, name) -> None:
    if name in OF_ONE_STUDY:
        normal = request.getfixturevalue(OF_ONE_STUDY[name])
    words = " ".join(all_words(once(normal)[name]).split())
    record = normal.record
    for part in (
        f"{record.experiment}: ",
        normal.run_id,
        record.backend,
        f"seed {record.seed}",
        "commit",
        "valid trials",
    ):
        assert part in words


def test_the_small_print_names_the_treatments_that_have_fewer_trials(eight, single) -> None:
    usual = max(valid_counts(eight).values())
    few = [t.label for t in eight.record.treatments if valid_counts(eight)[t.name] < usual]
    assert len(few) == 1
    expected = f"n = {usual} valid trials per treatment (except {usual - 1} of {few[0]})"
    assert n_text(eight) == expected
    assert n_text(single) == "n = 1 valid trials per treatment"


def test_only_a_study_of_clients_has_the_figure_of_clients(normal, clients) -> None:
    assert client_cost.client_cost(normal) is None
    table = client_cost.table(clients)
    assert set(table["client"]) == {"lean", "aiohttp", "httpx"}
    assert set(table["rate"]) == {200.0, 1000.0, 3000.0}
    assert (table["state"] == "invalid").sum() == 1


def test_only_a_study_of_codecs_has_the_figure_of_codecs(normal, codecs) -> None:
    assert codec_cost.codec_cost(normal) is None
    table = codec_cost.table(codecs)
    assert len(table) == 3 * 2 * 2
    # 80% of what the application takes of 20 requests in flight at 320 a second, in us, times the
    # mean of the planted spread; the others are planted twice as fast.
    json_us = 20 / 320 * 1e3 * APP_SHARE * 0.8 * (0.9 + 1.05) / 2
    fast = table["codec"] != "json"
    for own, planted in ((table[~fast], json_us), (table[fast], json_us / 2)):
        assert ((own["low"] < planted) & (planted < own["high"])).all()
    assert table.loc[fast, "high"].max() < table.loc[~fast, "low"].min()
    assert dict(zip(table["codec"], table["bytes"], strict=True))["protobuf"] == 64


def test_without_a_database_there_is_no_flush_figure(no_database) -> None:
    assert flush_cost.flush_cost(no_database) is None
    assert flush_cost.table(no_database).empty


def test_an_invalid_and_a_failed_trial_are_in_the_throughput_table(normal) -> None:
    table = throughput.table(normal)
    assert {"valid", "invalid", "failed"} <= set(table["state"])
    assert (table.loc[table["state"] != "valid", "reasons"] != "").all()


def test_the_throughput_figure_explains_invalid_and_failed_trials(normal) -> None:
    words = all_words(throughput.throughput(normal))
    assert "invalid trial" in words
    assert "failed trial" in words


def test_the_ecdf_table_holds_rising_quantiles_of_valid_trials_only(normal) -> None:
    table = latency_ecdf.table(normal)
    valid = set(normal.valid_trials()["treatment"])
    assert set(table["treatment"]) == valid
    for _, group in table.groupby("treatment"):
        assert group["response_ms"].is_monotonic_increasing


@pytest.mark.parametrize(("requests", "largest"), [(300, 0.99), (700, 0.999)])
def test_the_ecdf_table_holds_no_quantile_that_n_is_too_small_for(
    tmp_path, requests: int, largest: float
) -> None:
    # Six trials of a treatment: 1,800 responses bear a p99 and no p99.9, 4,200 bear both.
    table = latency_ecdf.table(write_run(tmp_path, requests=requests))
    assert set(table.groupby("treatment")["quantile"].max()) == {largest}
    assert set(table.groupby("treatment")["quantile"].min()) == {round(1 - largest, 3)}


def test_a_run_of_other_services_has_no_figure_of_their_cpu(tmp_path) -> None:
    run = write_run(tmp_path, requests=60, blocks=1)
    samples = run.samples()
    run.samples = lambda *_, **__: samples.assign(service="chat")
    assert latency_cpu.latency_cpu(run) is None


def test_the_parts_of_a_response_stand_in_the_order_in_which_a_request_meets_them(normal) -> None:
    order = ["connection wait", "queue and other", "pool", "execute", "commit", "unaccounted app"]
    for _, group in time_breakdown.table(normal).groupby("treatment"):
        found = [part for part in group["part"] if part in order]
        assert found == [part for part in order if part in found]
        assert len(found) > 3


def test_hollow_commits_are_explained_only_where_there_are_any(normal, single) -> None:
    assert "hollow" in all_words(flush_cost.flush_cost(normal))
    assert "hollow" not in all_words(flush_cost.flush_cost(single))


def test_the_parts_of_a_response_add_up_to_the_mean_response(normal) -> None:
    parts = time_breakdown.table(normal).groupby("treatment")["mean_ms"].sum()
    requests = normal.requests(trial_ids=list(normal.valid_trials()["trial_id"]))
    good = requests[requests["error"] == ""]
    response_ms = (good["done_ns"] - good["planned_ns"]) / 1e6
    expected = response_ms.groupby(good["treatment"]).mean()
    for name, total in parts.items():
        assert total == pytest.approx(expected[name], rel=0.05)


def block_lines(run: Run) -> list[set[tuple[str, int]]]:
    """Return the lines of the throughput figure as the treatments and blocks that they join."""
    figure = throughput.throughput(run)
    axes = figure.axes[0]
    trials = throughput.table(run)
    where = {
        round(float(row["throughput_rps"]), 6): (row["treatment"], row["block"])
        for row in trials.to_dict("records")
    }
    (lines,) = (each for each in axes.collections if isinstance(each, LineCollection))
    return [{where[round(float(x), 6)] for x, _ in line} for line in lines.get_segments()]


def test_block_lines_join_only_what_a_claim_compares(tmp_path) -> None:
    treatments = variants(5)
    pairs = [(0, 3), (1, 4)]
    claims = [contrast_of(treatments[b], treatments[a]) for a, b in pairs]
    run = write_run(
        tmp_path, treatments=treatments, blocks=3, requests=20, contrasts=claims, invalid={(1, 4)}
    )
    name = [each.name for each in treatments]
    expected = [
        {(name[a], block), (name[b], block)}
        for block in range(3)
        for a, b in pairs
        if (block, b) != (1, 4)
    ]
    found = block_lines(run)
    assert len(found) == len(expected)
    assert all(each in found for each in expected)


@pytest.mark.parametrize("draw", [throughput.throughput, time_breakdown.time_breakdown])
def test_what_is_compared_stands_side_by_side(tmp_path, draw) -> None:
    treatments = variants(6)
    claims = [contrast_of(treatments[n + 3], treatments[n]) for n in range(3)]
    figure = draw(
        write_run(tmp_path, treatments=treatments, blocks=1, requests=20, contrasts=claims)
    )
    order = [label.get_text().replace("\u00a0", " ") for label in figure.axes[0].get_yticklabels()]
    assert order == [f"variant {n} of the service" for n in (0, 3, 1, 4, 2, 5)]


def test_of_a_single_trial_there_is_a_point_and_no_line(single) -> None:
    axes = throughput.throughput(single).axes[0]
    assert [len(line.get_xdata()) for line in axes.lines] == []
    assert "one trial" in all_words(throughput.throughput(single))
    curves = [line.get_gid() for line in latency_ecdf.latency_ecdf(single).axes[0].lines]
    assert curves.count("trial") == 1
    assert "pooled" not in curves
    bars = time_breakdown.time_breakdown(single)
    assert not [line for line in bars.axes[0].lines if line.get_gid() == "interval"]
    assert "n = 1, no interval" in all_words(bars)


def test_several_trials_have_a_pooled_curve_and_the_legend_says_what_each_line_is(normal) -> None:
    figure = latency_ecdf.latency_ecdf(normal)
    lines = [line for line in figure.axes[0].lines if line.get_gid() == "pooled"]
    assert len(lines) == 2
    # Colours alone are alike in greyscale.
    assert len({line.get_linestyle() for line in lines}) == 2
    words = one_line(figure)
    assert "A thin line is one valid trial, a thick one all trials of a treatment pooled" in words
    assert "share of responses that were done by then" in words


def test_bars_have_the_interval_of_their_trials(normal) -> None:
    figure = time_breakdown.time_breakdown(normal)
    intervals = [line for line in figure.axes[0].lines if line.get_gid() == "interval"]
    requests = normal.requests(trial_ids=list(normal.valid_trials()["trial_id"]))
    good = requests[requests["error"] == ""]
    response_ms = (good["done_ns"] - good["planned_ns"]) / 1e6
    means = response_ms.groupby([good["treatment"], good["trial_id"]]).mean()
    expected = []
    for name in ("synchronous_commit=on", "synchronous_commit=off"):
        own = means[name]
        margin = stats.t.ppf(0.975, len(own) - 1) * stats.sem(own)
        expected.append([own.mean() - margin, own.mean() + margin])
        assert f"n = {len(own)} trials" in all_words(figure)
    assert [list(line.get_xdata()) for line in intervals] == [
        pytest.approx(ends) for ends in expected
    ]
    table = time_breakdown.table(normal)
    assert (table["low_ms"] <= table["mean_ms"]).all()
    assert (table["mean_ms"] <= table["high_ms"]).all()


def test_clients_are_joined_by_typical_values_with_intervals_where_there_are_several(
    clients, tmp_path
) -> None:
    axes = client_cost.client_cost(clients).axes[0]
    assert [line.get_gid() for line in axes.lines].count("interval") == 9
    levels = [{"client": "lean", "rate": rate} for rate in ("200", "1000")]
    alone = write_run(tmp_path, treatments=[Planted(each) for each in levels], blocks=1)
    assert [len(line.get_xdata()) for line in client_cost.client_cost(alone).axes[0].lines] == [0]


@pytest.mark.parametrize("name", ["throughput", "latency_ecdf", "time_breakdown", "latency_cpu"])
@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("all_failed", "No trial of the run is valid (12 failed: service 'postgres': died"),
        ("empty", "The run has no trial: it is interrupted."),
    ],
)
def test_an_empty_figure_says_in_a_sentence_why(name, case, words, request) -> None:
    figure = once(request.getfixturevalue(case))[name]
    assert words in one_line(figure)
    assert cut_off(figure) == []


def test_parts_that_may_lie_side_by_side_differ_in_greyscale() -> None:
    known = {part: luminance(color) for part, color in time_breakdown.COLORS.items()}
    assert all(abs(a - b) > 0.05 for a, b in combinations(known.values(), 2))
    assert all(abs(a - b) > 0.15 for a, b in pairwise(known.values()))
    spare = [luminance(color) for color in time_breakdown.SPARE]
    ends = [known["queue and other"], *spare, known[time_breakdown.REST]]
    assert all(abs(a - b) > 0.12 for a, b in pairwise([*ends[:-1], *spare[:1]]))
    assert all(abs(each - ends[-1]) > 0.05 for each in spare)


@pytest.mark.parametrize("count", [1, 12, 64])
def test_any_number_of_treatments_keeps_its_words_apart(tmp_path, count) -> None:
    treatments = [
        Planted({"variant": str(n)}, 1.0, f"{'a long name of a treatment, ' * 3}variant = {n}")
        for n in range(count)
    ]
    claims = [contrast_of(each, treatments[0]) for each in treatments[1:]]
    run = write_run(tmp_path, treatments=treatments, blocks=1, requests=5, contrasts=claims)
    for name in ("effect", "throughput", "time_breakdown"):
        figure = PLOTS[name].draw(run)
        assert cut_off(figure) == []
        assert overlapping(figure) == []
