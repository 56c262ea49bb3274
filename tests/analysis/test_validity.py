"""Why trials do not count is told with the numbers that it is about."""

from __future__ import annotations

from pathlib import Path

from perflab.analysis.validity import validity_table
from perflab.recordings import Reason
from tests.support.synthetic import write_run

LATE = "generator lag p50 {} ms is above 2.0 ms: the client, not the server, was late"


def late(text: str) -> Reason:
    return Reason(code="generator.lag", side="client", text=text)


def other(text: str, code: str = "machine.cores") -> Reason:
    return Reason(code=code, text=text)


def reasons(root: Path, *given: list[Reason]) -> str:
    run = write_run(root, invalid={(block, 0) for block in range(len(given))}, requests=40)
    trials = run.trials()
    bad = list(trials.index[trials["state"] == "invalid"])
    for index, each in zip(bad, given, strict=True):
        trials.at[index, "reasons"] = each
    run._trials = trials
    return str(validity_table(run)["reason"].iloc[0])


def test_equal_reasons_stand_once_with_the_range_of_their_numbers(tmp_path) -> None:
    told = reasons(tmp_path, *([late(LATE.format(ms))] for ms in ("5.31", "3.2", "11.0")))
    assert told == (
        "generator lag p50 3.2 to 11.0 ms is above 2.0 ms: the client, not the server, was late "
        "(3 trials)"
    )


def test_every_reason_is_told_the_most_frequent_first(tmp_path) -> None:
    told = reasons(
        tmp_path,
        [other("2 requests failed", "load.failed"), other("no core for 31% of the time")],
        [other("no core for 45% of the time")],
    )
    assert told == "no core for 31 to 45% of the time (2 trials); 2 requests failed (1 trial)"


def test_reasons_of_one_code_are_one_kind_whatever_their_words(tmp_path) -> None:
    """A trial with two of them is one trial; the wording that most have is told."""
    p50, p99 = "generator lag p50 3 ms", "generator lag p99 {} ms"
    told = reasons(
        tmp_path, [late(p50), late(p99.format(20))], [late(p99.format(30))], [late("2 early")]
    )
    assert told == "generator lag p99 20 to 30 ms, or alike (3 trials)"


def test_of_a_death_its_first_line_is_told_and_the_log_stays_in_the_trial(tmp_path) -> None:
    died = "service 'postgres': it was killed\nits last log lines:\nPostgreSQL 15.8"
    assert reasons(tmp_path, [other(died)]) == "service 'postgres': it was killed (1 trial)"
