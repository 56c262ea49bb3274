"""The table says why trials do not count, with the numbers of the reasons."""

from __future__ import annotations

from pathlib import Path

from perflab.analysis.validity import validity_table
from perflab.recordings import Reason
from tests.support.synthetic import write_run

LATE = "generator lag p50 {} ms is above 2.0 ms: the client, not the server, was late"


def late(text: str) -> Reason:
    return Reason(code="generator.late", side="client", text=text)


def other(text: str, code: str = "machine.cores") -> Reason:
    return Reason(code=code, text=text)


def reasons(root: Path, *by_trial: list[Reason]) -> str:
    run = write_run(root, invalid={(block, 0) for block in range(len(by_trial))}, requests=40)
    trials = run.trials()
    bad = list(trials.index[trials["state"] == "invalid"])
    for index, of_trial in zip(bad, by_trial, strict=True):
        trials.at[index, "reasons"] = of_trial
    run._trials = trials
    return str(validity_table(run)["reason"].iloc[0])


def test_equal_reasons_appear_once_with_the_range_of_their_numbers(tmp_path) -> None:
    text = reasons(tmp_path, *([late(LATE.format(ms))] for ms in ("5.31", "3.2", "11.0")))
    assert text == (
        "generator lag p50 3.2 to 11.0 ms is above 2.0 ms: the client, not the server, was late "
        "(3 trials)"
    )


def test_every_reason_appears_the_most_frequent_first(tmp_path) -> None:
    text = reasons(
        tmp_path,
        [other("2 requests failed", "load.failed"), other("no core for 31% of the time")],
        [other("no core for 45% of the time")],
    )
    assert text == "no core for 31 to 45% of the time (2 trials); 2 requests failed (1 trial)"


def test_reasons_of_one_code_are_one_kind_whatever_their_words(tmp_path) -> None:
    """A trial with two such reasons counts once, and the most frequent wording is shown."""
    p50, p99 = "generator lag p50 3 ms", "generator lag p99 {} ms"
    text = reasons(
        tmp_path, [late(p50), late(p99.format(20))], [late(p99.format(30))], [late("2 early")]
    )
    assert text == "generator lag p99 20 to 30 ms, or alike (3 trials)"


def test_only_the_first_line_of_a_reason_appears(tmp_path) -> None:
    died = "service 'postgres': it was killed\nits last log lines:\nPostgreSQL 15.8"
    assert reasons(tmp_path, [other(died)]) == "service 'postgres': it was killed (1 trial)"
