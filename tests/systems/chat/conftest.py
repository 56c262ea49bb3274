"""Recorded runs of crowds, written through the real store."""

from __future__ import annotations

import pytest

from perflab.recordings import Contrast, Run, RunWriter
from tests.systems.chat.synthetic_streams import write_stream_run

LOGINS = Contrast(
    name="costly against free logins", claim="logins under way raise latency",
    response="delivery_p90_ms", numerator={"rung": "costly_logins"},
    denominator={"rung": "free_logins"}, published_direction="greater", source="none",
)  # fmt: skip


@pytest.fixture(scope="session")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of two treatments and two blocks; the deliveries of one become slower."""
    return write_stream_run(tmp_path_factory.mktemp("streams"), contrasts=[LOGINS], growth=0.002)


@pytest.fixture(scope="session")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of streams without a valid trial."""
    run = write_stream_run(tmp_path_factory.mktemp("refused"), blocks=1)
    RunWriter.reopen(run.path).supersede(run.trials()["trial_id"])
    return Run(run.path)
