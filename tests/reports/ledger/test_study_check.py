"""What published numbers say by themselves: the table agrees with the rows that it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.errors import ParameterError, RecordingError
from perflab.recordings import published_value, studies
from perflab.reports.ledger.study_check import FINDINGS, check_table, checks

BAD, OPEN, GOOD = FINDINGS


def test_findings_follow_from_the_published_rows() -> None:
    said = {(check.study, check.check): (check.finding, check.numbers) for check in checks()}
    flying = [
        published_value("metricstream", "other published figures", "load test", f"in_flight_{end}")
        for end in ("low", "high")
    ]
    assert said["metricstream", "clients in flight"] == (
        BAD, "{:.0f} to {:.0f} in flight of 100 users".format(*flying),
    )  # fmt: skip
    clients = published_value("registry", "workload", "all", "clients")
    computed = clients / published_value("registry", "results table", "optimised", "total_duration")
    assert said["registry", "requests and duration"] == (
        GOOD, f"computed {computed:.4g}; stated 1.58",
    )  # fmt: skip
    p99s = [
        published_value("chat", "published results", f"{codec}, with login", "p99_latency") / 1e3
        for codec in ("protobuf", "+ uvloop")
    ]
    assert said["chat", "uvloop helps with logins, p99"] == (BAD, "{} after {}".format(*p99s))
    assert said["registry", "p99 of 100 requests"][0] == OPEN


def test_every_study_has_checks_and_their_names_are_unique() -> None:
    names = [(check.study, check.check) for check in checks()]
    assert len(set(names)) == len(names)
    assert {study for study, _ in names} == set(studies())


def test_what_does_not_fit_stands_first_and_can_be_asked_for_alone() -> None:
    places = [FINDINGS.index(finding) for finding in check_table("inference")["finding"]]
    assert places == sorted(places)
    assert set(check_table("inference", BAD)["finding"]) == {BAD}
    with pytest.raises(ParameterError, match="did you mean 'inconsistent'"):
        check_table(finding="inconsistant")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("own,ten,consistant,a,b", "line 2: finding = 'consistant': must be 'inconsistent', "),
        ("own,ten,,a,b", "line 2: finding: each row needs it"),
    ],
)
def test_a_line_of_another_kind_is_named(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "foreign" / "published"
    folder.mkdir(parents=True)
    (folder / "checks.csv").write_text(f"study,check,finding,statement,numbers\n{text}\n")
    monkeypatch.setenv("PERFLAB_SYSTEMS", str(tmp_path))
    with pytest.raises(RecordingError, match=said):
        checks()
