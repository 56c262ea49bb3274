"""Recorded runs of crowds, written through the real store."""

from __future__ import annotations

import pytest

from perflab.recordings import Contrast, Run, RunWriter
from tests.support.synthetic import BUSY
from tests.systems.chat.synthetic_streams import write_ladder, write_stream_run

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


@pytest.fixture(scope="session")
def rungs(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of two configurations with two numbers of users; json_50 is refused."""
    rows = [{}, {"delivery_p90_ms": 70.0}, {"delivery_p99_ms": 400.0}, {"delivery_p95_ms": 90.0}]
    refused_trial = {"state": "invalid", "reasons": [BUSY]}
    return write_ladder(
        tmp_path_factory.mktemp("rungs"),
        {
            ("json", 25): rows,
            ("json", 50): [{**row, **refused_trial} for row in rows],
            ("best", 50): rows,
            ("best", 80): rows[1:],
        },
    )
