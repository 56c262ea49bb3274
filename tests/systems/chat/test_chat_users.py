"""The records of one chat user, and when it leaves."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from perflab.systems.chat import users
from perflab.systems.chat.users import EVERY_S, ChatUser, Monitor, marked

MS = 1_000_000
DELIVERED = json.dumps({"kind": "message", "text": marked(1, "basil")}).encode()


class Socket:
    """A socket that accepts frames slowly and can be closed."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.closed_ns = 0
        self.wire_bytes = 0

    def send(self, data: bytes, _text: bool) -> None:
        time.sleep(0.005)
        self.sent.append(json.loads(data))

    async def close(self) -> None:
        self.closed_ns = time.monotonic_ns()


class NotingUser(ChatUser):
    """A user who keeps its notes."""

    def __init__(self) -> None:
        super().__init__(0, 1, {"codec": "json", "deflate": False, "channels": 1, "action_s": 1})
        self.socket = self.line = Socket()  # type: ignore[assignment]
        self.notes: list[tuple[int, int]] = []

    def note(self, direction: int, size: int, at_ns: int, key: int = 0, kind: int = 0) -> None:  # noqa: ARG002
        self.notes.append((at_ns, key))

    def says(self, due_ns: int) -> None:
        self.course.due_ns = due_ns
        self.say("send", {"kind": "send", "channel": "channel0", "text": "basil"})

    def is_answered(self, stamp: int) -> None:
        frame = {"kind": "ack", "sequence": 1, "stamp": stamp}
        self.hear(json.dumps(frame).encode(), self.now_ns())


def test_a_sending_is_recorded_with_the_instant_before_encoding() -> None:
    user, before_ns = NotingUser(), time.monotonic_ns()
    user.says(before_ns)
    ((at_ns, key),) = user.notes
    assert key == before_ns
    assert before_ns <= at_ns < before_ns + 5 * MS <= time.monotonic_ns()


def test_a_user_leaves_when_all_its_frames_are_answered() -> None:
    async def work() -> None:
        user = NotingUser()
        user.says(7)
        user.says(8)
        leaving = asyncio.create_task(user.on_stop())
        user.is_answered(8)
        await asyncio.sleep(0.05)
        assert not user.line.closed_ns
        user.is_answered(7)
        await asyncio.wait_for(leaving, 1)

    asyncio.run(work())


def test_a_user_leaves_after_a_burst_and_not_within_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Far longer than the gaps below, also on a busy machine.
    monkeypatch.setattr(users, "QUIET_S", 1.0)
    monkeypatch.setattr(users, "QUIET_TIMEOUT_S", 60.0)

    async def work() -> None:
        user = NotingUser()
        leaving = asyncio.create_task(user.on_stop())
        for _ in range(8):
            user.hear(DELIVERED, last_ns := user.now_ns())
            await asyncio.sleep(0.005)
        await leaving
        assert user.line.closed_ns >= last_ns + 1e9

    asyncio.run(work())


@pytest.mark.parametrize(("pings", "holds"), [("closed", True), ("planned", False)])
def test_a_closed_ping_holds_the_next_one_back_until_it_is_answered(
    pings: str, holds: bool
) -> None:
    async def work() -> None:
        monitor = Monitor(0, 1, {"codec": "json", "deflate": False, "pings": pings})
        monitor.socket = Socket()  # type: ignore[assignment]
        monitor.note = lambda *_, **__: None  # type: ignore[method-assign]
        monitor.course.due_ns = 7
        pinging = asyncio.create_task(monitor.ping())
        await asyncio.sleep(0.03)
        assert pinging.done() != holds
        # The next one is due a second after this one was, however long the answer takes.
        assert EVERY_S[0] <= monitor.pacing_s <= EVERY_S[1]
        monitor.hear(json.dumps({"kind": "pong", "stamp": 7}).encode(), 9)
        await asyncio.wait_for(pinging, 1)

    asyncio.run(work())
