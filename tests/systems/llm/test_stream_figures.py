"""Figures of streams show the planted values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.figures.shown import check_texts, pictures
from tests.systems.llm.planted_streams import write_streams

FIGURES = ["stream_times", "stream_costs", "users_by_limit"]


@pytest.mark.slow
def test_a_run_of_streams_has_its_figures_and_no_text_is_cut(tmp_path: Path) -> None:
    run = write_streams(tmp_path / "all", ("unpaced", "limits"))
    assert [figure for figure in pictures(run) if figure in FIGURES] == FIGURES
    check_texts(run, FIGURES)
