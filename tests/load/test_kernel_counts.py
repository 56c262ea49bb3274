"""The TCP counts of the kernel during a load are in its record, with remarks on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from perflab.host.kernel_counts import COUNTERS, tcp_counts
from perflab.load.checks.selfcheck import check
from perflab.load.checks.trend import remarks_on_tcp
from perflab.load.workload import OpenLoop, Request, Stage, Workload
from perflab.trials.summary import load_columns
from tests.load.planted import S, load_result

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
