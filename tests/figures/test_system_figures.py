"""The figures of systems on recorded runs: they are there, and no text of theirs is cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.figures.shown import check_texts, pictures
from tests.golden.recordings import write_recording

FIGURES = {
    "llm_streaming/claimed": ["stream_times", "stream_costs", "users_by_limit"],
    "connection_lifecycle/claimed": ["success_by_phase", "life_cycle_parts", "client_or_server"],
    # Its first step timed out.
    "registry_downloads/spoiled": ["download_ladder", "waterfall", "counts_over_time"],
}


@pytest.mark.slow
@pytest.mark.parametrize(("recording", "names"), FIGURES.items(), ids=FIGURES)
def test_a_run_has_the_figures_of_its_system_and_no_text_is_cut(
    recording: str, names: list[str], tmp_path: Path
) -> None:
    run = write_recording(tmp_path, recording)
    assert [name for name in pictures(run) if name in names] == names
    check_texts(run, names)
