"""The published results are tidy, numeric, and what the studies say."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from perflab.errors import RecordingError
from perflab.recordings import claims, published, published_value
from perflab.recordings.published_results import NUMBER_COLUMNS
from perflab.systems import experiment
from perflab.systems.chat.rungs import RUNGS

STUDIES = ["chat", "inference", "llm_proxy", "metricstream", "registry"]
QUALIFIERS = {"", "~", ">", "<", ">="}


@pytest.mark.parametrize("study", STUDIES)
def test_every_table_is_tidy(study) -> None:
    table = published(study)
    assert tuple(table.columns) == NUMBER_COLUMNS
    assert (table["study"] == study).all()
    assert np.isfinite(table["value"].astype(float)).all()
    assert set(table["qualifier"]) <= QUALIFIERS
    for column in ("place", "scenario", "measure", "unit"):
        assert (table[column] == table[column].str.strip()).all()
        assert (table[column] != "").all()
    assert not table.duplicated(["place", "scenario", "measure"]).any()


def test_claims_have_unique_names_in_known_studies() -> None:
    stated = claims()
    assert {claim.study for claim in stated} == set(STUDIES)
    assert len({(claim.study, claim.claim_id) for claim in stated}) == len(stated)
    assert all(claim.claim.endswith(".") for claim in stated)


def test_a_number_that_is_not_there_is_named_with_the_nearest() -> None:
    with pytest.raises(RecordingError, match=r"inference\.csv has no row 'results table / ONNX,"):
        published_value("inference", "results table", "ONNX, no DBs", "throughput")


def test_defaults_and_presets_are_the_published_loads() -> None:
    chat = experiment("chat_ladder").check({})
    base = partial(published_value, "chat", "workload", "base case")
    assert (chat.join_s, chat.action_s) == (base("join_delay"), base("action_delay"))
    share = published_value("chat", "system", "all", "receivers_per_message_per_user")
    assert chat.subscriber_share == share
    slow = published("chat").query("measure == 'join_delay' and place == 'published results'")
    assert RUNGS["slow_joins_425"].join_factor * chat.join_s == float(slow["value"].iloc[0])
    preset = experiment("synchronous_commit").check({"preset": "published"})
    assert (preset.requests, preset.concurrency, preset.workers, preset.pool_size) == (
        1000, 50, 4, 50,
    )  # fmt: skip


UNITS = (
    "s", "ms", "us", "ns", "min", "MiB", "requests/s", "messages/s", "1/s", "bytes",
    "bytes/s", "MiB/s", "MB/s", "%", "percentage points", "ratio", "1", "count", "users",
    "requests", "connections", "chunks", "major version",
)  # fmt: skip


def test_every_row_has_a_known_unit_and_a_kind() -> None:
    table = pd.concat(published(study) for study in STUDIES)
    assert set(table["unit"]) <= set(UNITS)
    assert (table["kind"] != "").all()
