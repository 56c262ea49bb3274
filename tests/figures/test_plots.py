"""Every plot draws what a run has, says what it lacks, and keeps its words inside."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from perflab.figures import PLOTS, draw_all
from perflab.figures.origin import n_text, valid_counts
from perflab.figures.plots import (
    client_cost,
    codec_cost,
    flush_cost,
    latency_cpu,
    latency_ecdf,
    throughput,
    time_breakdown,
)
from tests.figures.studies import OF_ONE_STUDY
from tests.synthetic import APP_SHARE, write_run

once = cache(draw_all)


def shown_texts(figure: Figure) -> list[Text]:
    """Return the texts that are really drawn (axes keep ticks beyond their view)."""
    figure.canvas.draw()
    unseen = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not low <= tick.get_loc() <= high:
                    unseen |= {tick.label1, tick.label2}
    texts = figure.findobj(Text)
    return [t for t in texts if t not in unseen and t.get_visible() and t.get_text().strip()]


def all_words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text)).replace("\u00a0", " ")


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
    boxes = [(t.get_text(), t.get_window_extent()) for t in shown_texts(figure)]
    width, height = figure.bbox.width, figure.bbox.height
    cut = [
        words
        for words, box in boxes
        if box.x0 < -0.5 or box.y0 < -0.5 or box.x1 > width + 0.5 or box.y1 > height + 0.5
    ]
    assert cut == []
    overlapping = [
        (a, b)
        for (a, one), (b, two) in combinations(boxes, 2)
        if one.x0 + 1 < two.x1 - 1
        and two.x0 + 1 < one.x1 - 1
        and one.y0 + 1 < two.y1 - 1
        and two.y0 + 1 < one.y1 - 1
    ]
    assert overlapping == []


@pytest.mark.parametrize("name", PLOTS)
def test_every_figure_states_its_origin_in_small_print(normal, request, name) -> None:
    if name in OF_ONE_STUDY:
        normal = request.getfixturevalue(OF_ONE_STUDY[name])
    words = " ".join(all_words(once(normal)[name]).split())
    record = normal.record
    for part in (normal.run_id, record.backend, f"seed {record.seed}", "commit", "valid trials"):
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
