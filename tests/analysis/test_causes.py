"""What the accounts of two sides say of their difference; planted accounts of six blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.accounts.causes import Causes, judged
from perflab.instruments.py_spy_profiles import Function

Account = Mapping[tuple[str, str], tuple[float, float]]
NOTHING = float("nan")
READ, ALL = ("statement", "db: SELECT a FROM t WHERE id = $1"), ("statement", "db: SELECT a FROM t")
F, G = ("f (a.py)", ""), ("g (a.py)", "")
# Count and ms of a request.
PLAIN: Account = {
    ("response", ""): (500.0, 2.0),
    ("cpu", ""): (NOTHING, 0.8),
    READ: (2.0, 0.1),
    ("store", "db"): (NOTHING, 0.2),
    ("wait", "a core"): (NOTHING, 0.1),
    ("count", "connections opened"): (0.01, NOTHING),
    ("count", "delayed acknowledgements"): (0.0, NOTHING),
}


def rows(treatment: str, account: Account, noise: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            {
                "treatment": treatment, "block": block, "kind": kind, "entry": entry,
                "count": count, "time_ms": time_ms * float(np.exp(rng.normal(0, noise))),
            }
            for block in range(6)
            for (kind, entry), (count, time_ms) in account.items()
        ]
    )  # fmt: skip


def profile(treatment: str, samples: Mapping[Function, int]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"treatment": treatment, "block": block, "function": name, "library": library,
             "samples": number}
            for block in range(4)
            for (name, library), number in samples.items()
        ]
    )  # fmt: skip


def compared(
    changes: Account, old: Account = PLAIN, noise: float = 0.01,
    functions: tuple[Mapping[Function, int], Mapping[Function, int]] = ({}, {}),
) -> Causes:  # fmt: skip
    accounts = pd.concat([rows("old", old, noise, 1), rows("new", {**old, **changes}, noise, 2)])
    table = pd.concat([profile(*side) for side in zip(("old", "new"), functions, strict=True)])
    causes = judged(accounts, table, "new", "old")
    assert causes is not None
    return causes


@pytest.mark.parametrize(
    ("changes", "words", "explains_ms"),
    [
        # A statement in a loop: its time, and what is on the way and in the store beside it.
        (
            {("response", ""): (500.0, 5.0), READ: (22.0, 1.1), ("store", "db"): (NOTHING, 1.2)},
            "22 statements a request instead of 2: db: SELECT a FROM t WHERE id = $1 (+20)",
            3.0,
        ),
        # A missing index: as many statements, and one that takes longer.
        (
            {("response", ""): (500.0, 5.0), READ: (2.0, 3.1)},
            "db: SELECT a FROM t WHERE id = $1 takes 3.",
            3.0,
        ),
        (
            {("response", ""): (500.0, 12.0), ("wait", "the end of a sleep"): (NOTHING, 10.0)},
            "waits for the end of a sleep: ",
            10.0,
        ),
        (
            {("response", ""): (500.0, 9.0), ("count", "connections opened"): (1.0, NOTHING),
             ("store", "db"): (NOTHING, 6.2)},
            "1 connections opened a request instead of 0.01",
            7.0,
        ),
        (
            {("response", ""): (500.0, 42.0),
             ("count", "delayed acknowledgements"): (1.0, NOTHING)},
            "answers wait for a delayed acknowledgement (40 ms)",
            40.0,
        ),
        (
            {("response", ""): (90_000.0, 3.0)},
            "answers of 90.0 kB instead of 500 bytes",
            1.0,
        ),
        (
            {("response", ""): (500.0, 3.0), ("cpu", ""): (NOTHING, 1.8)},
            "the service takes 1.",
            1.0,
        ),
    ],
)  # fmt: skip
@pytest.mark.promise
def test_the_first_cause_is_what_was_planted(
    changes: Account, words: str, explains_ms: float
) -> None:
    first = compared(changes).causes[0]
    assert first.text.startswith(words)
    assert first.explains_ms == pytest.approx(explains_ms, rel=0.15)


@pytest.mark.promise
def test_two_statements_that_became_a_dearer_one_are_told_by_it() -> None:
    # The list and its length were two statements, and are one that counts beside each row.
    total, both = (
        ("statement", "db: SELECT count(*) FROM t"),
        ("statement", f"db: SELECT {'a, ' * 50}n"),
    )
    old = {**PLAIN, READ: (1.0, 1.0), total: (1.0, 0.1), both: (0.0, 0.0)}
    changes = {
        ("response", ""): (500.0, 3.0), READ: (0.0, 0.0), total: (0.0, 0.0), both: (1.0, 2.1),
    }  # fmt: skip
    first = compared(changes, old).causes[0]
    assert first.text == f"{both[1][:79]}… instead of {READ[1]}"
    assert first.explains_ms == pytest.approx(1.0, rel=0.15)


@pytest.mark.promise
def test_threads_that_wait_for_a_core_beside_the_request_explain_no_more_than_is_left() -> None:
    # One core for all: while the statement works, threads that serve no request wait for it.
    dearer = ("statement", "db: SELECT a FROM t WHERE b = $1")
    changes = {
        ("response", ""): (500.0, 3.0), READ: (0.0, 0.0), dearer: (2.0, 1.0),
        ("wait", "a core"): (NOTHING, 2.5), ("wait", "a core (db)"): (NOTHING, 0.9),
    }  # fmt: skip
    waits = {("wait", "a core"): (NOTHING, 1.3), ("wait", "a core (db)"): (NOTHING, 0.1)}
    causes = compared(changes, {**PLAIN, dearer: (0.0, 0.0), **waits})
    assert causes.causes[0].text == f"{dearer[1]} instead of {READ[1]}"
    explained = sum(one.explains_ms for one in causes.causes)
    assert explained == pytest.approx(causes.response.change, rel=0.15)
    assert causes.times["not explained", ""].new == pytest.approx(0.0, abs=0.05)


@pytest.mark.promise
def test_equal_waits_of_other_threads_make_no_cause_of_what_nothing_explains() -> None:
    many = {**PLAIN, ("wait", "a core"): (NOTHING, 8.0)}
    causes = compared({("response", ""): (500.0, 3.0)}, many)
    assert causes.causes == ()
    assert causes.times["not explained", ""].change == pytest.approx(1.0, rel=0.15)


def test_more_cpu_than_the_response_lasts_leaves_no_wait_for_a_core() -> None:
    causes = compared({("response", ""): (500.0, 3.0)}, {**PLAIN, ("cpu", ""): (NOTHING, 4.0)})
    assert causes.times["wait", "a core"].new == 0.0


@pytest.mark.promise
def test_equal_sides_have_no_cause_and_the_size_that_would_be_seen_is_told() -> None:
    causes = compared({})
    assert causes.causes == ()
    assert 0 < causes.visible_ms < 0.2


def test_equal_sides_seldom_have_a_cause() -> None:
    named = 0
    for seed in range(50):
        accounts = pd.concat(
            [rows("old", PLAIN, 0.1, 2 * seed), rows("new", PLAIN, 0.1, 2 * seed + 1)]
        )
        causes = judged(accounts, pd.DataFrame(), "new", "old")
        assert causes is not None
        named += bool(causes.causes)
    assert named <= 7  # 5%, and three of its standard deviations


def test_cpu_is_divided_by_function_and_adds_up() -> None:
    changes = {("response", ""): (500.0, 3.0), ("cpu", ""): (NOTHING, 1.8)}
    before, after = {F: 40, G: 40}, {F: 40, G: 140}
    causes = compared(changes, functions=(before, after))
    assert causes.causes[0].text.startswith("g (a.py) takes 1.4")
    parts = sum(one.change for one in causes.times.values())
    assert parts == pytest.approx(causes.response.change)


@pytest.mark.promise
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        # The function asks more of a library; what it does itself stays.
        ({"": 20, "lib": 20}, {"": 20, "lib": 120}, ", mostly in lib"),
        # It works more itself, or asks more of two.
        ({"": 20, "lib": 20}, {"": 120, "lib": 20}, ""),
        ({"": 40}, {"": 60, "a": 40, "b": 40}, ""),
    ],
)
def test_the_library_that_a_function_spends_more_in_is_named(
    before: Mapping[str, int], after: Mapping[str, int], said: str
) -> None:
    changes = {("response", ""): (500.0, 3.0), ("cpu", ""): (NOTHING, 1.8)}
    sides = ({("f (a.py)", library): count for library, count in side.items()}
             | {("g (a.py)", "other"): 40} for side in (before, after))  # fmt: skip
    old, new = sides
    first = compared(changes, functions=(old, new)).causes[0].text
    assert first.startswith("f (a.py) takes 1.4")
    assert first.partition(" instead of ")[2].partition(",")[2].strip() == said.strip(", ")


def test_where_only_cpu_differs_functions_explain_it() -> None:
    """A thread beside the requests: they take as long."""
    before, after = {F: 80}, {F: 80, ("beat (a.py)", ""): 100}
    changes = {("cpu", ""): (NOTHING, 1.8)}
    old = {**PLAIN, ("response", ""): (500.0, 40.0)}
    causes = compared(changes, old, noise=0.05, functions=(before, after))
    assert not causes.response.differs
    (beat,) = causes.causes
    assert beat.text.startswith("beat (a.py), not seen on the other side, takes 1.0")


@pytest.mark.promise
def test_one_statement_instead_of_another_is_told_with_both() -> None:
    changes = {("response", ""): (500.0, 4.0), READ: (0.0, 0.0), ALL: (2.0, 2.1)}
    first = compared(changes).causes[0]
    assert first.text == "db: SELECT a FROM t instead of db: SELECT a FROM t WHERE id = $1"
    assert first.explains_ms == pytest.approx(2.0, rel=0.15)


def test_statements_that_begin_alike_are_told_from_where_they_differ() -> None:
    begin = f"db: SELECT {', '.join(f'items.column_{n}' for n in range(9))} FROM items WHERE "
    old, new = ("statement", f"{begin}name = $1"), ("statement", f"{begin}lower(name) = $1")
    before = {**PLAIN, old: (1.0, 0.1), new: (0.0, 0.0)}
    changes = {("response", ""): (500.0, 4.0), old: (0.0, 0.0), new: (1.0, 2.1)}
    first = compared(changes, before).causes[0].text
    assert first == "…lower(name) = $1 instead of …name = $1"


@pytest.mark.promise
@pytest.mark.parametrize("entry", ["connections opened", "processes and threads started"])
def test_what_others_do_in_the_time_of_a_longer_request_is_no_cause(entry: str) -> None:
    """The kernel counts these of the whole machine: here 500 a second, made by somebody else."""
    count = ("count", entry)
    old = {**PLAIN, count: (1.0, NOTHING)}
    # Half of the difference is in no entry.
    slower = {("response", ""): (500.0, 6.0), ("wait", "the end of a sleep"): (NOTHING, 2.0)}
    of_others = compared({**slower, count: (3.0, NOTHING)}, old)
    assert [cause.text.split(":")[0] for cause in of_others.causes] == [
        "waits for the end of a sleep"
    ]
    own = compared({("response", ""): (500.0, 6.0), count: (5.0, NOTHING)}, old)
    assert own.causes[0].text.startswith("5 ")


@pytest.mark.promise
def test_on_a_full_machine_a_store_waits_for_a_core_because_of_its_statements() -> None:
    """Times overlap there, so that what is left is negative."""
    changes = {
        ("response", ""): (500.0, 12.0), ("cpu", ""): (NOTHING, 1.8), READ: (22.0, 1.0),
        ("store", "db"): (NOTHING, 1.7), ("wait", "a core"): (NOTHING, 4.8),
        ("wait", "a core (db)"): (NOTHING, 4.0),
    }  # fmt: skip
    old = {**PLAIN, ("wait", "a core (db)"): (NOTHING, 0.5)}
    first = compared(changes, old).causes[0]
    assert first.text.startswith("22 statements a request instead of 2")
    assert first.explains_ms == pytest.approx(0.9 + 1.5 + 3.5, rel=0.1)


def test_a_wait_for_a_core_does_not_come_before_what_works_more() -> None:
    changes = {
        ("response", ""): (500.0, 9.0), ("cpu", ""): (NOTHING, 2.8),
        ("wait", "a core"): (NOTHING, 5.1),
    }  # fmt: skip
    texts = [cause.text for cause in compared(changes).causes]
    assert [text.split(":")[0].split(" takes")[0] for text in texts] == [
        "the service", "waits for a core",
    ]  # fmt: skip


def test_a_loop_and_a_new_connection_are_both_named() -> None:
    changes = {
        ("response", ""): (500.0, 12.0), READ: (22.0, 1.1), ("store", "db"): (NOTHING, 5.2),
        ("count", "connections opened"): (1.0, NOTHING),
    }  # fmt: skip
    opened, loop, *_ = compared(changes).causes
    assert opened.text.startswith("1 connections opened a request")
    assert opened.explains_ms == pytest.approx(5.0, rel=0.15)
    assert loop.text.startswith("22 statements a request instead of 2")
    # 10 ms in all, and the rest of them is on the way.
    assert loop.explains_ms == pytest.approx(5.0, rel=0.15)


@pytest.mark.promise
def test_a_count_that_explains_little_hides_nothing() -> None:
    """One more statement costs nothing; what the store does beside it is what is slower."""
    changes = {
        ("response", ""): (500.0, 5.0), ALL: (1.0, 0.001), ("store", "db"): (NOTHING, 3.2),
        ("count", "connections opened"): (0.01, NOTHING),
        ("wait", "the end of a sleep"): (NOTHING, 6.0),
    }  # fmt: skip
    # The sleep beside the requests makes what is left negative.
    texts = [cause.text for cause in compared(changes).causes]
    assert not [text for text in texts if "statements a request" in text]
    assert [text for text in texts if text.startswith("db, beside its statements")]


@pytest.mark.promise
def test_much_larger_answers_are_told_where_only_functions_take_longer() -> None:
    changes = {("response", ""): (400_500.0, 3.2), ("cpu", ""): (NOTHING, 2.0)}
    before, after = (
        {("send (web.py)", ""): 40, F: 60},
        {("send (web.py)", ""): 160, F: 60},
    )
    send, size = compared(changes, functions=(before, after)).causes
    assert send.text.startswith("send (web.py) takes")
    assert size.text == "answers of 400 kB instead of 500 bytes"
    assert math.isnan(size.explains_ms)
    of_server = [{("module web", ""): count, F: 60} for count in (40, 160)]
    size, _ = compared(changes, functions=(of_server[0], of_server[1])).causes
    assert size.text.startswith("answers of 400 kB")
    slightly = {**changes, ("response", ""): (520.0, 3.2)}
    assert len(compared(slightly, functions=(before, after)).causes) == 1


POOL, ASKED = ("metric", "pool_wait_seconds"), ("metric", "orm_queries_total")
WHOLE, RENDER = ("metric", "request_seconds"), ("metric", "render_seconds")


@pytest.mark.promise
def test_a_metric_of_the_service_names_what_no_entry_has() -> None:
    old = {**PLAIN, POOL: (1.0, 0.1), WHOLE: (1.0, 1.9)}
    changes = {("response", ""): (500.0, 6.0), POOL: (1.0, 4.1), WHOLE: (1.0, 5.9)}
    # The whole request is no cause of itself.
    (pool,) = compared(changes, old).causes
    assert pool.text.startswith("pool_wait_seconds, as the service counts it: 4.")
    assert pool.explains_ms == pytest.approx(4.0, rel=0.15)


@pytest.mark.promise
def test_what_is_read_of_one_side_alone_takes_no_cause_from_the_other_entries() -> None:
    changes = {("response", ""): (500.0, 3.0), ("cpu", ""): (NOTHING, 1.8), POOL: (1.0, 0.1)}
    by_function: tuple[Mapping[Function, int], Mapping[Function, int]] = ({}, {F: 9})
    (service,) = compared(changes, functions=by_function).causes
    assert service.text.startswith("the service takes 1.8")


def test_a_metric_of_what_an_entry_has_is_not_said_twice() -> None:
    old = {**PLAIN, RENDER: (1.0, 0.5)}
    changes = {
        ("response", ""): (500.0, 3.0), ("cpu", ""): (NOTHING, 1.8), RENDER: (1.0, 1.5),
    }  # fmt: skip
    (service,) = compared(changes, old).causes
    assert service.text.startswith("the service takes 1.8")


def test_a_number_of_the_service_stands_beside_the_causes() -> None:
    old = {**PLAIN, ASKED: (2.0, NOTHING)}
    changes = {
        ("response", ""): (500.0, 3.0), ("cpu", ""): (NOTHING, 1.8), ASKED: (21.0, NOTHING),
    }  # fmt: skip
    first, number = compared(changes, old).causes
    assert first.text.startswith("the service takes 1.8")
    assert number.text == "21 orm_queries_total a request instead of 2"
    assert math.isnan(number.explains_ms)
    # Where nothing differs it is no cause.
    assert compared({ASKED: (21.0, NOTHING)}, old).causes == ()
