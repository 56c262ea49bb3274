"""No text of the figures of connections is cut off or overlaps another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.figures.shown import check_texts
from tests.systems.metricstream.planted_connections import write_posts


@pytest.mark.slow
def test_a_run_of_connections_has_its_figures_and_no_text_is_cut(tmp_path: Path) -> None:
    check_texts(write_posts(tmp_path, ("phases",), 4), ["success_by_phase", "life_cycle_parts"])
