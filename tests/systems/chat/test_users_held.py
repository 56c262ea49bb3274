"""Users held: a number is not held if one of its trials, or of a smaller number, missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.recordings import Reason, Run
from perflab.systems.chat.ladder import targets_ms
from perflab.systems.chat.users_held import held_sentences, users_held
from tests.systems.chat.synthetic_streams import write_ladder

GOOD: dict[str, object] = {}
LATE: dict[str, object] = {"delivery_p90_ms": 231.0}
FAR_TOO_LATE: dict[str, object] = {"delivery_p90_ms": 300.0, "delivery_p99_ms": 1200.0}
CLIENTS = Reason(code="load.failed", side="client", text="late")
SERVERS = Reason(code="service.failed", side="server", text="died")
REFUSED: dict[str, object] = {"state": "invalid", "reasons": [CLIENTS]}
CUT: dict[str, object] = {"state": "invalid", "reasons": [SERVERS]}
FAILED: dict[str, object] = {"state": "failed", "reasons": [SERVERS]}
WORKER: dict[str, object] = {"state": "failed", "reasons": [CLIENTS]}
FEW: dict[str, object] = {"delivery_p99_ms": float("nan")}


def sentences(run: Run) -> dict[str, str]:
    return dict(sentence.split(": ", 1) for sentence in held_sentences(users_held(run)))


def test_each_configuration_says_what_it_held_and_missed(tmp_path: Path) -> None:
    run = write_ladder(
        tmp_path,
        {
            "best_600": [GOOD, GOOD],
            "json_250": [GOOD, GOOD],
            "best_700": [GOOD, LATE],
            "json_300": [FAR_TOO_LATE, LATE],
            "best_425": [GOOD, GOOD],
        },
    )
    table = users_held(run)
    assert list(table["configuration"]) == ["best"] * 3 + ["json"] * 2
    assert list(table["users"]) == [425, 600, 700, 250, 300]
    assert list(table["held"]) == [2, 2, 1, 2, 0]
    assert list(table["missed"]) == [0, 0, 1, 0, 2]
    assert list(table["first_missed"]) == ["", "", "delivery_p90_ms", "", "delivery_p90_ms"]
    words = sentences(run)
    assert words["best"] == (
        "600 users and 36,000 messages/s (no interval) held in 2 of 2 trials [16%, 100%]; with "
        "700 users, 1 of 2 trials [1%, 99%] missed a target (p90)"
    )


@pytest.mark.parametrize("names", [("uvloop", "uvloop_300"), ("uvloop_300", "uvloop")])
def test_a_rung_under_a_profiler_is_no_size_of_the_rung_without(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    planted = {"uvloop": [GOOD], "uvloop_300": [LATE]}
    words = sentences(write_ladder(tmp_path, {name: planted[name] for name in names}))
    assert set(words) == {"uvloop", "uvloop 300"}
    assert "300 users" not in words["uvloop"]
    assert "with 300 users, 1 of 1 trial" in words["uvloop 300"]


def test_more_users_are_not_held_if_fewer_were_not(tmp_path: Path) -> None:
    planted = {"best_500": [GOOD], "best_600": [LATE], "best_700": [GOOD]}
    words = sentences(write_ladder(tmp_path, planted))["best"]
    held = "500 users and 25,000 messages/s (no interval) held in 1 of 1 trial [3%, 100%]"
    assert words.startswith(f"{held}; with 600 ")


def test_a_refused_trial_is_in_the_denominator(tmp_path: Path) -> None:
    planted = {"best_500": [GOOD] * 4, "best_600": [GOOD, GOOD, GOOD, REFUSED]}
    words = sentences(write_ladder(tmp_path, planted))["best"]
    assert "4 of 4 trials [40%, 100%]" in words
    assert "with 600 users nothing is shown, 3 of 4 trials [19%, 99%] held" in words
    planted = {"best_600": [GOOD, LATE, REFUSED, REFUSED]}
    words = sentences(write_ladder(tmp_path / "late", planted))["best"]
    assert words == "with 600 users, 1 of 4 trials [1%, 81%] missed a target (p90), 2 were refused"


def test_a_fault_of_the_service_alone_is_a_miss_and_no_refusal(tmp_path: Path) -> None:
    planted = {"best_500": [GOOD, GOOD], "best_900": [CUT, GOOD]}
    run = write_ladder(tmp_path, planted)
    assert users_held(run)[["held", "missed", "refused"]].values.tolist() == [[2, 0, 0], [1, 1, 0]]
    assert sentences(run)["best"].endswith(
        "with 900 users, 1 of 2 trials [1%, 99%] failed through the service's own fault"
    )


def test_a_fault_of_the_client_or_too_few_deliveries_is_no_miss(tmp_path: Path) -> None:
    planted = {"best_500": [GOOD, WORKER], "best_900": [REFUSED, FEW]}
    run = write_ladder(tmp_path, planted)
    assert users_held(run)[["held", "missed", "refused"]].values.tolist() == [[1, 0, 1], [0, 0, 2]]


def test_a_run_whose_every_trial_failed_held_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_ladder(tmp_path, {"best_500": [FAILED], "best_900": [FAILED]})
    trials = run.current_trials().drop(columns=["messages_per_s", *targets_ms()])
    monkeypatch.setattr(run, "current_trials", lambda: trials)
    assert users_held(run)[["held", "missed", "refused"]].values.tolist() == [[0, 1, 0]] * 2
