"""The lines under an answer that say why: what they name, what is left, and when nothing is."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import pytest

from perflab.analysis.accounts.causes import Cause, Causes
from perflab.analysis.accounts.entries import Entry
from perflab.reports import causes as reported

NOTHING = Entry(0.1, 0.1, 0.0, -0.1, 0.1, 1.0)
SURE = {"p_value": 0.0, "adjusted": 0.0}


def lines(
    monkeypatch: pytest.MonkeyPatch, response: Entry, *causes: Cause, cpu: Entry = NOTHING,
    only_loaded: str = "", unread: tuple[str, ...] = (),
) -> list[str]:  # fmt: skip
    found = Causes(response, cpu, {}, {}, {}, causes, 0.25, only_loaded, unread)
    monkeypatch.setattr(reported, "causes_of", lambda *_: found)
    return reported.why_lines(SimpleNamespace(), "new", "old")  # type: ignore[arg-type]


def test_causes_come_with_what_they_explain_and_what_is_left_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slower = Entry(2.0, 6.0, 4.0, 3.8, 4.2, **SURE)
    assert lines(monkeypatch, slower, Cause("f takes longer", 2.5)) == [
        "why: f takes longer (+2.50 of +4.00 ms)",
        "     +1.50 of +4.00 ms are in none of these",
    ]


def test_there_are_three_lines_at_most_and_the_load_has_one_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slower = Entry(2.0, 6.0, 4.0, 3.8, 4.2, **SURE)
    causes = [Cause(name, 0.5) for name in "abc"]
    told = lines(monkeypatch, slower, *causes, only_loaded="most comes under the load")
    assert told == ["why: a (+0.500 of +4.00 ms)", "     b (+0.500 of +4.00 ms)",
                    "     most comes under the load"]  # fmt: skip


def test_where_nothing_is_certain_the_size_that_would_be_seen_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same = Entry(2.0, 2.1, 0.1, -0.2, 0.4, 0.4, 0.4)
    assert lines(monkeypatch, same) == [
        "why: no difference is certain where requests come one at a time: +0.100 ms "
        "[-0.200, 0.400]; an entry above 0.250 ms would have been seen"
    ]
    slower = Entry(2.0, 6.0, 4.0, 3.8, 4.2, **SURE)
    (line,) = lines(monkeypatch, slower)
    assert line.startswith("why: nothing stands out in +4.00 ms [3.80, 4.20];")


def test_where_only_cpu_differs_the_unit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    same = Entry(2.0, 2.1, 0.1, -0.2, 0.4, 0.4, 0.4)
    more = Entry(1.0, 2.0, 1.0, 0.9, 1.1, **SURE)
    told = lines(monkeypatch, same, Cause("beat takes longer", 0.9), cpu=more)
    assert told == ["why: beat takes longer (+0.900 of +1.00 ms of CPU)"]


def test_a_run_without_this_part_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reported, "causes_of", lambda *_: None)
    assert reported.why_lines(SimpleNamespace(), "new", "old") == []  # type: ignore[arg-type]


def test_what_could_not_be_read_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    slower = Entry(2.0, 6.0, 4.0, 3.8, 4.2, **SURE)
    told = lines(
        monkeypatch, slower, Cause("f takes longer", 4.0), Cause("asked_total", math.nan),
        unread=("the functions of 'new' are not known: allow it by a setting",),
    )  # fmt: skip
    assert told == [
        "why: f takes longer (+4.00 of +4.00 ms)", "     asked_total",
        "     not read: the functions of 'new' are not known: allow it by a setting",
    ]  # fmt: skip


def test_the_causes_are_json_where_numbers_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    slower = Entry(2.0, 6.0, 4.0, 3.8, 4.2, 0.0)
    found = Causes(slower, NOTHING, {("wait", "a core"): NOTHING}, {}, {},
                   (Cause("larger answers", math.nan),), 0.25)  # fmt: skip
    monkeypatch.setattr(reported, "causes_of", lambda *_: found)
    data = reported.why_data(SimpleNamespace(), "new", "old")  # type: ignore[arg-type]
    assert json.loads(json.dumps(data, allow_nan=False))["causes"][0]["explains_ms"] is None
