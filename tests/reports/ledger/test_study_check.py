"""The study check finds the known traps of the studies, and depends on the rows alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.errors import ParameterError, RecordingError
from perflab.recordings import studies
from perflab.reports.ledger.rows import Word
from perflab.reports.ledger.rules import RULES
from perflab.reports.ledger.study_check import check_table, checks

BAD, OPEN, GOOD = Word.INCONSISTENT, Word.CANNOT_TELL, Word.CONSISTENT


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
