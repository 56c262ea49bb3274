"""The kernel's part in a report: what moved, whose it is, and nothing where nothing is known."""

from __future__ import annotations

from pathlib import Path

from perflab.analysis.trials.moved import HOST, kernel_part
from perflab.recordings import Run
from perflab.reports.section import section_text
from perflab.reports.tables import NOTE, readable_kernel
from tests.synthetic import ON_AND_OFF, write_run

OFF = ON_AND_OFF[1]


def counted(folder: Path) -> Run:
    """Write a run in which one treatment overflows a backlog in every second block."""
    run = write_run(folder, requests=40, blocks=4)
    valid = run.valid_trials()
    overflows = [
        20 * (block % 2) * (name == OFF.name)
        for block, name in zip(valid["block"], valid["treatment"], strict=True)
    ]
    columns = {
        "tcp_listen_overflows": overflows,
        "tcp_resets": 0,
        "accept_drops_inference": [float(each) for each in overflows],
        "accept_drops_postgres": 0.0,
        "accept_queue_max_postgres": 5.0,
    }
    told = valid.assign(**columns)
    run.valid_trials = lambda: told  # type: ignore[method-assign]
    return run


def test_what_moved_is_told_by_treatment_and_by_whom(tmp_path: Path) -> None:
    found = kernel_part(counted(tmp_path)).set_index(["treatment", "whose", "what"])
    overflows = found.loc[OFF.name, HOST, "overflows of a listen backlog"]
    assert list(overflows[["median", "smallest", "largest", "trials"]]) == [10, 0, 20, 4]
    assert found.loc[OFF.name, "inference", "connections dropped at its socket"]["largest"] == 20
    assert not {"connections reset"} & set(found.index.get_level_values("what"))
    dropped = found.xs("connections dropped at its socket", level="what")
    assert set(dropped.index.get_level_values("whose")) == {"inference"}


def test_a_section_has_it_with_the_words_for_whose_it_is(tmp_path: Path) -> None:
    run = counted(tmp_path)
    text = section_text(run)
    assert "## The kernel's part" in text
    assert NOTE in text
    assert "| overflows of a listen backlog | 10 (0 to 20) | 4 |" in text
    assert "| longest accept queue seen | 5 | 4 |" in text


def test_a_recording_without_it_says_nothing(tmp_path: Path) -> None:
    run = write_run(tmp_path, requests=30, blocks=2)
    known = [name for name in run.valid_trials() if not name.startswith("core_wait_share")]
    told = run.valid_trials()[known]
    run.valid_trials = lambda: told  # type: ignore[method-assign]
    assert readable_kernel(run).empty
    assert "kernel's part" not in section_text(run)
