"""The summary of a load as an object, a table and an exit status; the kernel's TCP counts in it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len

from perflab.cli.load_status import Status, status_of
from perflab.host.kernel_counts import COUNTERS, tcp_counts
from perflab.load.checks.machine_counts import remarks_on_tcp
from perflab.load.checks.selfcheck import check
from perflab.load.checks.stalls import received
from perflab.load.clients.outcome import LONGEST_TEXT, MOST_KINDS, FirstErrors
from perflab.load.records.failure_stop import FailureStop
from perflab.load.records.names import TEMPLATE_NAMES, write_names
from perflab.load.report import percentiles_ms, summary
from perflab.load.summary import LoadSummary, NameSummary
from perflab.load.summary_table import WIDTH, _bytes, table
from perflab.load.workload import ClosedLoop, Objective, OpenLoop, Request, Stage, Workload
from perflab.statistics.quantiles import needed_n
from perflab.trials.summary import load_columns
from tests.load.planted import BEGIN_NS, S, load_result, scripted


def shown(
    folder: Path, requests: int = 400, objectives: tuple[Objective, ...] = (), **facts: Any
) -> LoadSummary:
    arrivals = ClosedLoop(users=5, requests=requests, pacing_s=0.1)
    work = Workload(request=Request(), arrivals=arrivals, objectives=objectives)
    result = load_result(folder, np.linspace(0.4, 5, requests), **facts)
    return summary(result, work, check(result, work))


def with_rows(summary: LoadSummary, *names: str) -> LoadSummary:
    """Return a summary whose names have the numbers of all."""
    numbers = {field: getattr(summary, field) for field in set(NameSummary.model_fields) - {"name"}}
    rows = tuple(NameSummary(name=name, **numbers) for name in names)
    return summary.model_copy(update={"by_name": rows})


def test_a_summary_is_read_from_its_json_as_it_was_written(tmp_path: Path) -> None:
    wide = Objective(percentile=90, below_ms=1000)
    stop = FailureStop(failures=5, at_ns=BEGIN_NS + 3 * S, after_s=3.0)
    facts: dict[str, Any] = {"errors": {"reset": 40, "timeout": 9}, "failure_stop": stop}
    whole = with_rows(shown(tmp_path / "a", objectives=(wide,), **facts), "browse")
    plain = shown(tmp_path / "b")
    for numbers in (whole, plain):
        written = json.loads(json.dumps(numbers.model_dump(mode="json")))
        assert LoadSummary.model_validate(written).model_dump(mode="json") == written
        assert table(LoadSummary.model_validate(written)) == table(numbers)
        assert written["response_time_ms"] == numbers.response_time.ms
        assert written["response_time_at_least_ms"] == numbers.response_time.at_least_ms
    assert {"stop", "messages_received", "chunks"} & {*plain.model_dump()} == set()
    assert {"failures", "unwritten"} & {*whole.model_dump()} == set()


@pytest.mark.parametrize("share", [50, 90, 95, 99, 99.9])
@pytest.mark.promise
def test_a_percentile_is_shown_from_the_sample_on_that_supports_it(share: float) -> None:
    values = np.arange(needed_n(share)) * 1_000_000
    assert list(percentiles_ms(values, (share,)).values()) != [None]
    assert list(percentiles_ms(values[1:], (share,)).values()) == [None]


def test_failures_are_listed_by_cause_with_status_and_first_text(tmp_path: Path) -> None:
    numbers = shown(
        tmp_path,
        errors={"tls": 7, "timeout": 3},
        first_errors={("tls", 0): "certificate verify failed: self-signed certificate"},
    )
    assert [(cause.error, cause.count) for cause in numbers.errors_by_cause] == [
        ("tls", 7), ("timeout", 3),
    ]  # fmt: skip
    text = " ".join(table(numbers).split())
    assert "7 x tls (first: certificate verify failed: self-signed certificate)" in text
    assert "3 x timeout (first: no whole answer within the time-out (--timeout))" in text


def test_the_table_fits_eighty_columns_and_any_pipe(tmp_path: Path) -> None:
    texts = {("protocol", 0): "words that go on " * 15}
    numbers = shown(
        tmp_path, errors={"protocol": 20}, first_errors=texts, capped=12345, latency_s=123.0,
        stopped="p99 was 1234 ms over the last 5 s (the objective is 100 ms)",
    )  # fmt: skip
    name = "GET /a/path/that/is/far/too/long/for/the/column/of/names/in/a/table"
    text = table(with_rows(numbers, name, "short"))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.isascii()
    assert name in text
    assert "n<3688" in text


def test_amounts_of_data_have_no_exponent() -> None:
    shown = [_bytes(count) for count in (0, 999.4, 999.6, 12_345, 999_700)]
    assert shown == ["0 B", "999 B", "1 kB", "12.3 kB", "1 MB"]


def test_names_of_any_script_stand_in_one_column_and_no_two_look_alike(tmp_path: Path) -> None:
    numbers = shown(tmp_path)
    names = ("支払い 🚀", "payment", "pay\u200bment")
    text = table(with_rows(numbers, *names))
    rows = [row for row in text.splitlines() if row.startswith(("支払い", "pay"))]
    assert [row.split()[0] for row in rows[1:]] == ["payment", "pay\\u200bment"]
    ends = {cell_len(row[: row.index(f"{numbers.requests}")]) for row in rows}
    assert len(ends) == 1


def test_requests_of_scripted_users_have_a_row_for_every_name(tmp_path: Path) -> None:
    work = scripted(duration_s=1)
    result = load_result(tmp_path, np.linspace(0.4, 5, 100), errors={"status": 10})
    rows = np.array(result.rows[0])
    rows["template"][40:] = 1
    (tmp_path / "0" / "requests.rows").write_bytes(rows.tobytes())
    write_names(tmp_path / "0", TEMPLATE_NAMES, ["login", "browse"])
    del result.__dict__["rows"]
    numbers = summary(result, work, check(result, work))
    counts = [(row.name, row.requests, row.errors) for row in numbers.by_name]
    assert counts == [("browse", 60, 0), ("login", 40, 10)]
    assert "browse" in table(numbers)


def test_each_cause_has_an_exit_status_of_its_own(tmp_path: Path) -> None:
    tight, wide = Objective(percentile=90, below_ms=1), Objective(percentile=90, below_ms=1000)
    rare = Objective(percentile=99.9, below_ms=1000)

    def status(name: str, *objectives: Objective, **facts: Any) -> Status:
        return status_of(shown(tmp_path / name, objectives=objectives, **facts))

    assert status("good", wide) == Status.GOOD == 0
    assert status("missed", wide, tight) == Status.MISSED == 99
    assert status("unknown", rare) == Status.INVALID == 3
    assert status("invalid", tight, errors={"reset": 40}) == Status.INVALID
    lines = table(shown(tmp_path / "told", errors={"reset": 40})).splitlines()
    assert lines[0] == "INVALID: these numbers may not be used"
    assert lines[1].startswith("  - ")
    assert status("failed", errors={"reset": 400}) == Status.ALL_FAILED == 4
    assert status("interrupted", tight, stopped="interrupted") == Status.INTERRUPTED == 130


def test_first_errors_are_bounded_and_printable() -> None:
    errors = FirstErrors()
    errors.note("tls", "no\x1b[2J\n" + "x" * 10_000)
    errors.note("tls", "later")
    for status in range(1000):
        errors.note("status", "text", status)
    texts_kept = errors.texts()
    assert len(texts_kept) == MOST_KINDS
    assert texts_kept[0][2].startswith("no [2J x")
    assert max(len(text) for _, _, text in texts_kept) <= LONGEST_TEXT
    assert all(text.isprintable() for _, _, text in texts_kept)


@pytest.mark.promise
def test_response_times_count_from_the_planned_instant_and_service_times_from_sending(
    tmp_path: Path,
) -> None:
    def waited(rows: np.ndarray) -> None:
        rows["planned_ns"] -= 20_000_000
        rows["sent_ns"] += 5_000_000

    numbers = shown(tmp_path, latency_s=0.05, change=waited)
    times = (numbers.response_time, numbers.service_time, numbers.connection_wait)
    assert [each.ms["p50"] for each in times] == pytest.approx([70.0, 45.0, 5.0])
    assert numbers.generator_lag_ms["p50"] == pytest.approx(20.0)


NETSTAT = """\
TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts TCPSynRetrans
TcpExt: 9 3 4 5 6
IpExt: InOctets
IpExt: 1
"""
SNMP = """\
Icmp: InMsgs
Icmp: 3
Tcp: RtoAlgorithm AttemptFails EstabResets RetransSegs OutRsts
Tcp: 1 7 8 9 10
"""


def test_counters_are_read_by_their_names_and_are_none_where_nothing_counts(tmp_path: Path) -> None:
    (tmp_path / "netstat").write_text(NETSTAT)
    (tmp_path / "snmp").write_text(SNMP)
    counts = tcp_counts(tmp_path)
    assert counts == {
        "tcp_listen_overflows": 3, "tcp_listen_drops": 4, "tcp_timeouts": 5,
        "tcp_syn_retransmits": 6, "tcp_failed_connects": 7, "tcp_resets": 8, "tcp_retransmits": 9,
        "tcp_resets_sent": 10,
    }  # fmt: skip
    assert set(counts) == set(COUNTERS.values())
    assert tcp_counts(tmp_path / "nowhere") == {}


def test_a_full_backlog_has_a_remark_with_its_meaning_and_its_scope(tmp_path: Path) -> None:
    counted = {"tcp_listen_overflows": 12, "tcp_syn_retransmits": 12, "tcp_resets": 0}

    def waited(rows: np.ndarray) -> None:
        rows["connect_ns"][:5] = [round(wait_s * S) for wait_s in (1.01, 0.99, 3.02, 0.5, 0.0002)]

    result = load_result(
        tmp_path, np.linspace(0.4, 5, 500), cpu_ns=S // 10, kernel=counted, change=waited
    )
    stage = Stage(rate=100, duration_s=5)
    judgement = check(result, Workload(request=Request(), arrivals=OpenLoop(stages=(stage,))))
    assert judgement.valid
    (told,) = judgement.warnings
    assert told.code == "host.tcp"
    assert "12 overflows of a listen backlog, 12 SYNs sent again" in told.text
    assert "network namespace" in told.text
    assert "3 connections of this load waited 1 s or longer" in told.text
    assert remarks_on_tcp(replace(result, kernel=dict.fromkeys(counted, 0))) == []
    assert load_columns(result)["tcp_listen_overflows"] == 12


def test_messages_count_from_the_first_planned_request_to_the_end_of_the_window(
    tmp_path: Path,
) -> None:
    # Requests are planned from 0.1 s on, messages 0.3 s before they come.
    stop = FailureStop(failures=5, at_ns=BEGIN_NS + 3 * S, after_s=3.0)
    came_s = np.array([0.05, 0.2, 1.0, 2.0, 4.0, 9.0])
    facts: dict[str, Any] = {"delivered_s": came_s, "failure_stop": stop}
    result = load_result(tmp_path / "a", np.linspace(0.4, 5, 400), **facts)
    assert len(received(result).known) == 4
    numbers = shown(tmp_path / "b", **facts)
    assert numbers.messages_received == 3
    assert numbers.messages_per_s == pytest.approx(3 / 2.9)
