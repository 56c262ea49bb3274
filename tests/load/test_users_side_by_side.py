"""Users of a script who cannot begin, and users who send several requests at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perflab.load.checks.selfcheck import check
from perflab.load.records.result import LoadResult
from perflab.load.workload import Request, Scripted, Workload
from tests.load.planted import load_result, scripted
from tests.load.processes import a_worker, served

SCRIPT = """
import asyncio
from perflab.load.users import User, action

class HalfIn(User):
    wait_s = 0.02
    async def on_start(self):
        if self.number % 2:
            {}["token"]
    @action
    async def ask(self):
        await self.get("/")

class Page(User):
    wait_s = 0.02
    @action
    async def open(self):
        await asyncio.gather(self.get("/a"), self.get("/b"))
"""


def load(folder: Path, kind: str, **arrivals: object) -> tuple[LoadResult, Workload]:
    (folder / "users.py").write_text(SCRIPT)
    words = {"script": f"{folder}/users.py:{kind}", "duration_s": 0.5, **arrivals}
    work = Workload(request=Request(), arrivals=Scripted.model_validate(words), timeout_s=5.0)
    with served("0.002") as port, a_worker() as generator:
        return generator.run(work, f"http://127.0.0.1:{port}"), work


@pytest.mark.promise
def test_a_load_with_users_who_never_began_is_not_the_one_asked_for(tmp_path: Path) -> None:
    result, work = load(tmp_path, "HalfIn", users=4, warmup_s=0.2)
    assert result.users_lost == 2
    told = [reason for reason in check(result, work).reasons if reason.code == "load.users_lost"]
    assert [str(reason) for reason in told]
    assert "2 of 4 users did not get beyond on_start (KeyError in on_start: 'token')" in told[0]
    result.discard()


def test_few_users_who_never_began_are_told(tmp_path: Path) -> None:
    work = scripted(users=100)
    result = load_result(tmp_path, np.linspace(1, 99, 500), users_lost=2)
    judged = check(result, work)
    assert "load.users_lost" not in {reason.code for reason in judged.reasons}
    assert "2 of 100 users did not get beyond on_start" in {
        remark.text for remark in judged.warnings
    }


def test_requests_that_a_user_sends_side_by_side_are_all_answered(tmp_path: Path) -> None:
    result, _ = load(tmp_path, "Page", users=1)
    table = result.requests
    assert set(table["error"]) == {""}
    assert set(table["template"]) == {"GET /a", "GET /b"}
    result.discard()
