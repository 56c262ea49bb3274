"""Each rule on both sides of its limit, and the known traps of the studies that the rules find."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.errors import ParameterError, RecordingError
from perflab.recordings import studies
from perflab.reports.ledger.rows import Interval, Part, Parts, Word, exactly
from perflab.reports.ledger.rules import RULES
from perflab.reports.ledger.study_check import check_table, checks

BAD, OPEN, GOOD = Word.INCONSISTENT, Word.CANNOT_TELL, Word.CONSISTENT


def word_of(rule: str, *parts: tuple[str, object]) -> Word:
    """Return the word of a rule on named numbers, intervals and words."""
    return RULES[rule](Parts([part(name, value) for name, value in parts])).word


def part(name: str, value: object) -> Part:
    if isinstance(value, str):
        return Part(name, text=value)
    if value is None:
        return Part(name, row="a / b / c")
    return Part(name, value if isinstance(value, Interval) else exactly(float(str(value))))


CASES = [
    # M/M/1 and any other stable system: 1,000/s for 3 ms are 3 in flight (Little).
    ("in_flight", [("rate", 1000), ("time", 0.003), ("users", 3)], GOOD),
    ("in_flight", [("rate", 1000), ("time", 0.002), ("time", 0.003), ("users", 100)], BAD),
    ("in_flight", [("rate", 320), ("time", Interval(0.15, 0.16)), ("users", 50)], GOOD),
    ("product", [("times", 1000), ("over", 320), ("stated", Interval(3.05, 3.15))], GOOD),
    ("product", [("times", 1000), ("over", 320), ("stated", Interval(3.15, 3.25))], BAD),
    ("total", [("plus", 500), ("plus", 34), ("stated", 534)], GOOD),
    ("total", [("plus", 134.9), ("minus", 72.76), ("stated", 64.26)], BAD),
    ("change", [("new", 80), ("old", 100), ("stated", -0.2)], GOOD),
    ("change", [("new", 80), ("old", 100), ("lost", 0.2)], GOOD),
    ("change", [("new", 80), ("old", 100), ("stated", 0.2)], BAD),
    ("share", [("part", 1), ("rest", 0.5), ("rest", 0.5), ("stated", 0.5)], GOOD),
    ("share", [("part", 1), ("rest", 0.5), ("rest", 0.2), ("stated", 0.67)], BAD),
    ("shares_fit", [("low", 0.3), ("high", 0.7), ("low", 0.3), ("high", 0.7)], GOOD),
    ("shares_fit", [("low", 0.1), ("high", 0.7), ("low", 0.3), ("high", 0.7)], BAD),
    ("same", [("first", Interval(315, 325)), ("second", 325)], GOOD),
    ("same", [("first", Interval(315, 325)), ("second", 483)], BAD),
    ("ascending", [("step", 1), ("step", 1), ("step", 2)], GOOD),
    ("ascending", [("step", 1), ("step", 3), ("step", 2)], BAD),
    ("at_most", [("plus", 0.3), ("plus", 0.7), ("limit", 1)], GOOD),
    ("at_most", [("plus", 0.5), ("plus", 0.7), ("limit", 1)], BAD),
    ("at_most", [("times", 100), ("over", 300), ("limit", 0.5)], GOOD),
    # 412 requests of which 41.3% failed, the 5 of the stop, and a request of each user.
    ("at_most", [("times", 412), ("times", 0.413), ("limit", 5), ("limit", 166)], GOOD),
    ("at_most", [("times", 412), ("times", 0.413), ("limit", 5), ("limit", 164)], BAD),
    # 10, 5 and 1 ms per request: 5 of 9 ms go with the first change.
    ("cost_share", [("slow", 100), ("between", 200), ("fast", 1000), ("stated", 5 / 9)], GOOD),
    ("cost_share", [("slow", 100), ("between", 200), ("fast", 1000), ("stated", 0.9)], BAD),
    ("cost_share", [("slow", 100), ("between", 200), ("fast", 1000)], BAD),
    ("cost_share", [("slow", 100), ("between", 900), ("fast", 1000)], GOOD),
    ("omitted_pings", [("latency", 2.1), ("interval", 1)], OPEN),
    ("omitted_pings", [("latency", 0.7), ("interval", 1)], GOOD),
    ("percentile_support", [("percentile", 0.99), ("n", 368)], GOOD),
    ("percentile_support", [("percentile", 0.99), ("n", 367), ("n", 450)], OPEN),
    ("censored", [("time", 300.9), ("limit", 300)], OPEN),
    ("censored", [("time", 51), ("limit", 300)], GOOD),
    ("several", [("n", 1)], OPEN),
    ("several", [("n", 2)], GOOD),
    ("several", [("n", 412), ("over", 270)], OPEN),
    ("several", [("n", 600), ("over", 270)], GOOD),
    ("as_large_as", [("twin", 320), ("twin", 483), ("over", 730), ("under", 483)], OPEN),
    ("as_large_as", [("twin", 483), ("twin", 480), ("over", 730), ("under", 483)], GOOD),
    ("near_limit", [("value", 270), ("limit", 512), ("each", 2)], OPEN),
    ("near_limit", [("value", 800), ("limit", 512), ("each", 2)], GOOD),
    ("two_changes", [("change", "a core"), ("change", "slower joins")], OPEN),
    ("two_changes", [("change", "a core")], GOOD),
    ("missing_row", [("wanted", 1), ("wanted", None)], OPEN),
    ("missing_row", [("wanted", 1)], GOOD),
    ("two_estimands", [("of", "pings"), ("of", "deliveries")], OPEN),
    ("two_estimands", [("of", "pings"), ("of", "pings")], GOOD),
    ("circular", [("derived", 0.64)], OPEN),
    ("instants", [("join", 0.35), ("interval", 6), ("stated", 120)], GOOD),
    ("instants", [("join", 0.35), ("interval", 6), ("stated", 24)], BAD),
    ("instants", [("join", 0.25), ("interval", 6), ("users", 240), ("stated", 10)], GOOD),
    # Fewer users than instants: one at each.
    ("instants", [("join", 0.35), ("interval", 6), ("users", 60), ("stated", 1)], GOOD),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "parts", "word"), CASES)
def test_a_rule_says_what_follows(rule: str, parts: list[tuple[str, object]], word: Word) -> None:
    assert word_of(rule, *parts) == word


def test_every_rule_is_tried_and_has_its_reason_in_words() -> None:
    assert {rule for rule, _, _ in CASES} == set(RULES)
    assert all((rule.__doc__ or "").startswith("Say") for rule in RULES.values())


def test_a_part_that_lacks_is_named() -> None:
    with pytest.raises(RecordingError, match="wants one part 'users', not 0"):
        word_of("in_flight", ("rate", 1), ("time", 1))
    with pytest.raises(RecordingError, match="part 'rate' has no number"):
        word_of("in_flight", ("rate", "many"), ("time", 1), ("users", 1))


TRAPS = [
    ("metricstream", "clients in flight", BAD),
    ("metricstream", "shares add up", BAD),
    ("metricstream", "phases 1 and 2 chain", BAD),
    ("inference", "Little's law: ONNX, no DB", GOOD),
    ("inference", "one endpoint, two studies", BAD),
    ("inference", "driver or another setting", OPEN),
    ("inference", "flush as the bottleneck", BAD),
    ("registry", "censored mean", OPEN),
    ("registry", "p99 of 100 requests", OPEN),
    ("registry", "threads of the default", BAD),
    ("registry", "log against table, high", BAD),
    ("registry", "MB/s", BAD),
    ("llm_proxy", "failures beyond the threshold, old", BAD),
    ("llm_proxy", "failures with those broken off, old", GOOD),
    ("llm_proxy", "successes grew", BAD),
    ("llm_proxy", "users at failure and sockets", OPEN),
    ("chat", "pings for a p99", OPEN),
    ("chat", "pings for a p90", GOOD),
    ("chat", "text against table: who serializes faster", BAD),
    ("chat", "loops that json.dumps allows", BAD),
    ("chat", "binding or joins", OPEN),
    ("chat", "volume as a finding", OPEN),
    ("chat", "protobuf beats orjson, p99", BAD),
    ("chat", "pings that wait: JSON, with login", OPEN),
    ("chat", "percentiles ascend: JSON, with login", GOOD),
]


def test_known_traps_are_found_with_every_rule_and_names_are_unique() -> None:
    all_checks = checks()
    words = {(check.study, check.name): check.result.word for check in all_checks}
    for study, name, word in TRAPS:
        assert words[study, name] == word, name
    assert {check.study for check in all_checks} == set(studies())
    assert {check.rule for check in all_checks} == set(RULES)
    assert len(words) == len(all_checks)


def test_what_does_not_fit_stands_first_and_can_be_asked_for_alone() -> None:
    order = list(Word)
    words = [order.index(Word(word)) for word in check_table("inference")["finding"]]
    assert words == sorted(words)
    assert set(check_table("inference", "inconsistent")["finding"]) == {"inconsistent"}
    with pytest.raises(ParameterError, match="did you mean 'inconsistent'"):
        check_table(finding="inconsistant")


# ---- a study from outside the lab ---------------------------------------------------------------

ROWS = """study,place,scenario,measure,unit,value,qualifier,kind,answer,note
own,table,a,rate,requests/s,{rate},,result,built in: it,
own,table,a,latency,ms,5,,result,built in: it,
own,table,all,users,users,10,,setting,built in: it,
"""
CHECKS = """study,check,rule,part,place,scenario,measure,number,unit,text
own,in flight,{rule},statement,,,,,,ten are in flight
own,in flight,{rule},rate,table,{scenario},rate,,,
own,in flight,{rule},time,table,a,latency,,,
own,in flight,{rule},users,table,all,users,,,
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that writes a system with a study and its checks."""

    def write(rate: int = 2000, rule: str = "in_flight", scenario: str = "a") -> None:
        folder = tmp_path / "foreign" / "published"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "own.csv").write_text(ROWS.format(rate=rate))
        (folder / "checks.csv").write_text(CHECKS.format(rule=rule, scenario=scenario))
        monkeypatch.setenv("PERFLAB_SYSTEMS", str(tmp_path))

    return write


def test_a_new_study_adds_rows_and_no_code_and_a_finding_follows_its_rows(own) -> None:
    own()
    (check,) = checks("own")
    assert (check.statement, check.result.word) == ("ten are in flight", GOOD)
    assert check.rows == ("table / a / rate", "table / a / latency", "table / all / users")
    own(rate=500)
    assert [check.result.word for check in checks("own")] == [BAD]


def test_a_rule_or_a_row_that_is_not_there_is_named_with_the_nearest(own) -> None:
    own(rule="in_fligt")
    with pytest.raises(RecordingError, match=r"'in flight': no rule 'in_fligt'.*'in_flight'"):
        checks("own")
    own(scenario="b")
    with pytest.raises(RecordingError, match=r"no row 'table / b / rate'.*'table / a / rate'"):
        checks("own")
