"""The effect figure: every claim with its blocks, estimate, published value and verdict."""

from __future__ import annotations

import math

import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.effect_words import effect_text
from perflab.analysis.evaluation import evaluate
from perflab.figures import EFFECT
from perflab.figures.canvas import LabFigure
from perflab.recordings import Run
from tests.figures.shown import cut_off, one_line, overlapping, picture
from tests.support.findings import findings_table
from tests.support.synthetic import ON_AND_OFF, contrast_of, variants, write_run

CLAIM = "a claim with a long story of what variant {} does to throughput, told to its very end"


def effect(run: Run) -> LabFigure:
    return picture(EFFECT, run)


def drawn(axes: Axes, gid: str) -> list[Line2D]:
    return [line for line in axes.lines if line.get_gid() == gid]


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Run:
    """A run with claims of every kind: sizes, directions, a difference, one without data."""
    treatments = variants(7)
    kinds = [
        {"published_ratio": 1.5},
        {"published_ratio": None, "published_direction": "smaller"},
        {"published_ratio": None, "published_direction": "none"},
        {"published_ratio": None, "scale": "difference", "published_difference": 30.0},
        {"published_ratio": 0.5, "published_direction": "smaller", "response": "p50_ms"},
        {"published_ratio": None, "published_direction": None, "response": "nothing_ms"},
        {"published_ratio": None, "not_testable": "this machine has one core"},
    ]
    claims = [
        contrast_of(treatments[min(n, 6)], treatments[0], claim=CLAIM.format(n), **kind)
        for n, kind in enumerate(kinds, 1)
    ]
    return write_run(
        tmp_path_factory.mktemp("many"), treatments=treatments, contrasts=claims, requests=40,
        invalid={(2, 1)},
    )  # fmt: skip


def test_its_numbers_are_those_of_the_findings(many: Run) -> None:
    findings = findings_table(evaluate(many))
    table = EFFECT.table(many, evaluate(many))
    for name, column in {"measured": "measured", "low": "95% low", "high": "95% high"}.items():
        assert list(table[name]) == pytest.approx(list(findings[column]), nan_ok=True)
    assert list(table["verdict"]) == list(findings["verdict"])
    words = one_line(effect(many))
    assert many.record.question in words
    assert all(verdict in words for verdict in findings["verdict"])
    for finding in evaluate(many):
        if finding.effect:
            told = f"{finding.verdict} {effect_text(finding)} n = {finding.effect.n_text} blocks"
            assert told in words


def test_every_block_is_a_point_the_first_on_top(tmp_path) -> None:
    run = write_run(tmp_path, requests=40, failed={(2, 0)})
    (finding,) = evaluate(run)
    assert finding.blocks == (0, 1, 3, 4, 5)
    axes = effect(run).axes[0]
    (points,) = drawn(axes, "blocks")
    assert list(points.get_xdata()) == pytest.approx(
        [math.exp(x) for x in finding.effect.by_block], rel=1e-5
    )
    heights = [axes.transData.transform((1.0, y))[1] for y in points.get_ydata()]
    assert heights == sorted(heights, reverse=True)
    (middle,), (bar,) = drawn(axes, "estimate"), drawn(axes, "interval")
    ends = [finding.effect.low, finding.effect.high]
    assert list(middle.get_xdata()) == pytest.approx([finding.effect.estimate], rel=1e-5)
    assert list(bar.get_xdata()) == pytest.approx(ends, rel=1e-5)
    assert "n = 5 blocks, 1 block left out" in one_line(effect(run))


def test_starts_that_blocks_share_are_counted_as_starts(tmp_path) -> None:
    words = one_line(effect(write_run(tmp_path, blocks=8, parameters={"fresh_blocks": 2})))
    assert "n = 4 starts of 8 blocks" in words
    assert "Every point is one start that blocks share" in words


@pytest.mark.parametrize(
    ("direction", "arrow"),
    [("greater", "\N{RIGHTWARDS ARROW}"), ("smaller", "\N{LEFTWARDS ARROW}")],
)
def test_the_arrow_of_a_limit_points_to_what_is_claimed(tmp_path, direction, arrow) -> None:
    claim = contrast_of(
        ON_AND_OFF[1], ON_AND_OFF[0], published_ratio=None, published_direction=direction, limit=1.2
    )
    figure = effect(write_run(tmp_path, contrasts=[claim]))
    (told,) = [text.get_text() for axes in figure.axes for text in axes.texts
               if "published: in words" in text.get_text()]  # fmt: skip
    assert arrow in told


def test_the_published_value_is_a_hollow_diamond_at_its_place(many: Run) -> None:
    marked = [line for axes in effect(many).axes for line in drawn(axes, "published")]
    assert [float(line.get_xdata()[0]) for line in marked] == [1.5, 1.0, 30.0, 0.5]
    assert {(line.get_marker(), line.get_markerfacecolor()) for line in marked} == {("D", "white")}
    words = one_line(effect(many))
    for part in ("published: 1.5", "published: smaller than 1", "published: no effect"):
        assert part in words


def test_differences_have_a_panel_of_their_own_with_no_effect_at_0(many: Run) -> None:
    panels = {axes.get_xlabel(): axes for axes in effect(many).axes if axes.axison}
    assert list(panels) == [
        "ratio (log): more throughput →",
        "difference, requests/s: more throughput →",
        "ratio (log): more response time →",
    ]
    lines = [drawn(axes, "no effect")[0].get_xdata()[0] for axes in panels.values()]
    assert lines == [1.0, 0.0, 1.0]
    assert [axes.get_xscale() for axes in panels.values()] == ["log", "linear", "log"]


def test_claims_are_never_cut_and_those_without_a_number_say_why(many: Run) -> None:
    figure = effect(many)
    words = one_line(figure)
    assert "the trials have no column 'nothing_ms'" in words
    assert "not testable here this machine has one core" in words
    assert all(CLAIM.format(n) in words for n in range(1, 8))
    assert "…" not in words
    assert cut_off(figure) == []
    assert overlapping(figure) == []


def test_one_block_has_no_interval_and_that_of_few_blocks_leaves_the_picture(tmp_path) -> None:
    figure = effect(write_run(tmp_path / "one", requests=40, blocks=1))
    (axes,) = figure.axes
    assert [len(drawn(axes, gid)) for gid in ("blocks", "estimate", "interval")] == [1, 0, 0]
    assert "(no interval)" in one_line(figure)
    (axes,) = effect(write_run(tmp_path / "two", requests=40, blocks=2, noise=0.3)).axes
    (bar,) = drawn(axes, "interval")
    _, high = axes.get_xlim()
    assert bar.get_xdata()[1] == high
    assert any(line.get_marker() == ">" and line.get_xdata()[0] == high for line in axes.lines)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"treatments": ON_AND_OFF[:1]}, "This run has one treatment, so there is nothing"),
        ({"contrasts": []}, "This run has no claim that compares two of its treatments."),
        (
            {"failed": {(0, 0), (1, 0)}},
            "no block has a valid trial on both sides; there is nothing to compare",
        ),
    ],
)
def test_without_a_comparison_it_says_why(tmp_path, changes, words) -> None:
    figure = effect(write_run(tmp_path, blocks=2, requests=20, **changes))
    assert words in one_line(figure)
    assert cut_off(figure) == []
