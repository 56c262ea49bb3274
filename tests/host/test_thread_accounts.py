"""The scheduler's account: how long threads ran and waited, also those that ended."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from perflab.host.kernel_counts import ServiceAccount, account_of, accounts_of

CONTEXT = multiprocessing.get_context("fork")


def burn(core: int, until: float) -> None:
    os.sched_setaffinity(0, {core})
    while time.monotonic() < until:
        pass


def test_threads_that_share_a_core_wait_as_long_as_the_other_runs() -> None:
    core, until = min(os.sched_getaffinity(0)), time.monotonic() + 1.5
    pair = [CONTEXT.Process(target=burn, args=(core, until)) for _ in range(2)]
    for process in pair:
        process.start()
    try:
        time.sleep(1.2)
        accounts = accounts_of([process.pid for process in pair if process.pid])
    finally:
        for process in pair:
            process.join()
    assert len(accounts) == 2
    ran, waited = (sum(account[n] for account in accounts.values()) for n in (0, 1))
    # Other programs may wait in the same queue: then both wait longer, never less.
    assert waited > 0.5 * ran > 0


def test_a_thread_that_has_ended_keeps_its_account() -> None:
    account = ServiceAccount()
    account.add({(1, 1): (100, 10), (1, 2): (50, 5)})
    assert account.add({(1, 1): (120, 12)}) == (170, 17)
    assert account.add({(1, 1): (7, 3)}) == (177, 20), "its number was given to another"


@pytest.mark.parametrize("text", ["0 0 0\n", "", "1 2\n"])
def test_a_kernel_that_keeps_no_account_gives_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "schedstat").write_text(text)
    assert account_of(str(tmp_path)) is None
