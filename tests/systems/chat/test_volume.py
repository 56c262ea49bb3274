"""Volume against users: planted exponents are found, from what can tell them and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.recordings import Run, RunWriter, TreatmentRecord
from perflab.systems.chat.analysis.volume import (
    JOINING,
    PLATEAU,
    crowd_law,
    crowds,
    published_factor,
    volume_laws,
)
from perflab.systems.chat.analysis.windows import stream_windows
from perflab.systems.chat.figures.volume_users import MEASURED, VOLUME_USERS
from tests.figures.shown import all_words, one_line, picture
from tests.systems.chat.synthetic_streams import write_ladder, write_stream_run


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_stream_run(tmp_path_factory.mktemp("growing"), blocks=2)


def with_delays(run: Run, *delays: str) -> Run:
    """Return the run as if its users had begun otherwise."""
    treatments = [
        TreatmentRecord(**{**item.model_dump(), "levels": {**item.levels, "first_delay": delay}})
        for item, delay in zip(run.record.treatments, delays, strict=True)
    ]
    other = Run(run.path)
    other.record = run.record.model_copy(update={"treatments": treatments})
    return other


def ladder(root: Path, users: list[int], **changes: float) -> Run:
    return write_ladder(root, {("best", each): [dict(changes)] * 4 for each in users})


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_exponent_of_crowds_is_found_again(growing: Run, power: float) -> None:
    size = np.tile(np.arange(10, 200, 5), 4)
    planted = pd.DataFrame(
        {
            "trial_id": np.repeat(list("abcd"), len(size) // 4),
            "treatment": "rung=costly_logins",
            "acting": size,
            "listeners": size,
            "messages_per_s": 0.1 * size**power,
        }
    )
    law = crowd_law(crowds(growing, planted))
    assert law.exponent == pytest.approx(power, abs=0.02)
    assert "(n = 4 trials" in law.text()


def test_crowds_within_few_trials_are_not_taken_for_trials(growing: Run) -> None:
    windows = stream_windows(growing, "chat")
    few = crowd_law(crowds(growing, windows[windows["block"] == 0]))
    assert not few.supported
    assert "2 trials" in few.text()
    assert crowd_law(crowds(growing, windows)).n == 4


@pytest.mark.parametrize("delay", ["together", "spread"])
def test_users_who_begin_together_make_no_crowds(growing: Run, delay: str) -> None:
    run = with_delays(growing, delay, delay)
    windows = stream_windows(run, "chat")
    assert crowds(run, windows).empty
    laws = volume_laws(run, windows)
    assert list(laws) == [PLATEAU]
    assert not laws[PLATEAU].supported
    assert laws[PLATEAU].text() == (
        "no exponent from treatments with 2 numbers of users: 3 are needed"
    )


def test_both_kinds_of_treatments_are_told_apart(growing: Run) -> None:
    run = with_delays(growing, "scaled", "together")
    windows = stream_windows(run, "chat")
    assert list(volume_laws(run, windows)) == [JOINING, PLATEAU]
    assert crowds(run, windows)["block"].nunique() == 2


def test_whole_trials_with_other_numbers_of_users_tell_the_exponent(tmp_path: Path) -> None:
    run = ladder(tmp_path, [250, 300, 425])
    (law,) = volume_laws(run, stream_windows(run, "chat")).values()
    assert law.exponent == pytest.approx(2)
    assert law.factor == pytest.approx(0.1)
    assert "n = 4 blocks" in law.text()


def test_points_without_a_message_do_not_vanish_silently(tmp_path: Path) -> None:
    run = write_ladder(
        tmp_path,
        {
            ("best", users): [{"messages_per_s": 0.0 if users == 300 else 0.1 * users**2}] * 4
            for users in (250, 300, 350, 425)
        },
    )
    words = one_line(picture(VOLUME_USERS, run))
    assert "4 of 16 points without a positive messages_per_s are left out" in words
    assert list(VOLUME_USERS.table(run)["what"]).count(MEASURED) == 12


PUBLISHED = {"action_s": 6.0, "subscriber_share": 0.64}


@pytest.mark.parametrize(
    ("changes", "factor"),
    [({}, 0.1), ({"action_s": 3.0}, None), ({"subscriber_share": 0.5}, None)],
)
def test_the_published_law_stands_only_beside_the_published_load(
    tmp_path: Path, changes: dict[str, float], factor: float | None
) -> None:
    run = ladder(tmp_path, [250, 300, 425])
    RunWriter.reopen(run.path).update(parameters={**run.record.parameters, **PUBLISHED, **changes})
    run = Run(run.path)
    assert published_factor(run) == factor
    assert ("published: 0.1 n²" in all_words(picture(VOLUME_USERS, run))) == (factor is not None)
