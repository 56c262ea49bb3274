"""Figures of crowds show their data without cut text, and other runs do not have them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks.coverage import cpu_shares, latency_of, windows_of
from perflab.analysis.effect_words import effect_text
from perflab.analysis.evaluation import evaluate
from perflab.figures.origin import page_of
from perflab.figures.view import draw_table, reread
from perflab.recordings import Run, TreatmentRecord
from perflab.systems.chat import delivery_cpu
from perflab.systems.chat.delivery_cpu import DELIVERY_CPU
from perflab.systems.chat.login_bands import LOGIN_BANDS
from perflab.systems.chat.windows import STREAM_TIMELINE
from tests.figures.shown import check_texts, one_line, picture, pictures

BEGIN, END = ["effect", "ladder"], ["delivery_cpu", "stream_timeline"]
NAMES = {
    "latency_cpu": [*BEGIN, *END, "login_bands", "delivery_volume"],
    "chat_ladder": [*BEGIN, "users_held", *END, "delivery_volume"],
}


def with_more(run: Run, count: int) -> Run:
    """Return the run with ``count`` further treatments, which have no valid trial."""
    further = [
        TreatmentRecord(name=f"rung=more{number}", levels={"users": "20"}, label=f"more {number}")
        for number in range(count)
    ]
    other = Run(run.path)
    treatments = [*run.record.treatments, *further]
    other.record = run.record.model_copy(update={"treatments": treatments})
    return other


def test_a_run_of_streams_has_the_figures_of_streams_and_no_text_is_cut_off(
    crowds: Run, refused: Run
) -> None:
    for run in (crowds, refused):
        assert list(pictures(run)) == NAMES[run.record.experiment]
        check_texts(run, pictures(run))


def test_a_knee_is_a_line_in_the_band_of_its_interval(streams: Run) -> None:
    table = reread(DELIVERY_CPU.table(streams))
    table.loc[table["what"] == "knee", ["cpu_percent", "low", "high"]] = [45.0, 40.0, 51.0]
    axes = draw_table(DELIVERY_CPU, table, page_of(streams)).axes[0]
    assert 45.0 in [line.get_xdata()[0] for line in axes.lines]
    (band,) = axes.patches
    assert (band.get_x(), band.get_x() + band.get_width()) == (40.0, 51.0)


def test_a_stream_run_without_a_valid_trial_says_so(refused: Run) -> None:
    for name, figure in pictures(refused).items():
        words = one_line(figure)
        assert "No trial of the run is valid (all superseded)." in words or name == "effect"


@pytest.mark.parametrize(
    ("view", "more", "words"),
    [
        (STREAM_TIMELINE, 1, "Shown: the first 2 of 3 treatments."),
        (DELIVERY_CPU, 2, ""),
    ],
)
def test_treatments_that_are_not_shown_are_counted(streams, view, more: int, words: str) -> None:
    text = one_line(picture(view, with_more(streams, more)))
    assert words in text
    assert ("Shown: the first" in text) == bool(words)


def test_the_figure_of_logins_tells_their_cost_as_the_claim_does(streams: Run) -> None:
    (sentence,) = LOGIN_BANDS.table(streams)["words"].dropna()
    (finding,) = (each for each in evaluate(streams) if each.contrast.name == "logins, CPU")
    assert effect_text(finding) in sentence


@pytest.mark.promise
def test_beyond_the_shares_that_the_study_read_off_it_stands_how_much_steeper_latency_is() -> None:
    random = np.random.default_rng(1)
    cpu = cpu_shares(random, "loads")
    usual_ms = latency_of("in proportion, bent", cpu)
    seconds = windows_of(random, cpu, usual_ms, heavy=False).rename(columns={"p50_ms": "p90_ms"})
    told = delivery_cpu._knee("rung=json", seconds)["words"]
    found = re.search(
        r"; from 50% on (\S+) times as steep \[\S+, \S+\], from 70% on \S+ times", told
    )
    assert found
    assert 1.5 < float(found[1]) < 4.5
    few = delivery_cpu._knee("rung=json", seconds[seconds["trial_id"] < 7])["words"]
    assert few.startswith("too few trials for a knee: 7 of 8; from 50% on ")
    idle = delivery_cpu._knee("rung=json", seconds[seconds["cpu"] < 0.4])["words"]
    assert "% on" not in idle
