"""Carrying out a stack's hooks, bounded in time and with an ear for who wants to end."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from perflab.errors import HookFailed, ServiceFailed, StackError
from perflab.stacks.asking import exchange
from perflab.stacks.backend import Instance
from perflab.stacks.database import Database
from perflab.stacks.health import CAUSE_SEEN_WITHIN_S, refuse_dead
from perflab.stacks.hooks import Hook, HttpHook, Purpose, SqlHook
from perflab.stacks.json_pointer import find
from perflab.stacks.patience import Interrupted, Result, go_on, patiently

BUSY = 409
ASK_AGAIN_S = 0.1
SHOWN_CHARACTERS = 500
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True)
class HookCall:
    """One hook about to be carried out on the instance that serves its node.

    ``database`` opens a line to the instance where it is a PostgreSQL server.
    """

    purpose: Purpose
    hook: Hook
    instance: Instance
    database: Callable[[], Database]
    interrupted: Interrupted

    def perform(self) -> Any:
        """Carry the hook out; return what it answered (a value, a JSON text, or what it printed).

        Raises
        ------
        HookFailed
            It was refused, gave another answer than expected, or took too long.
        ServiceFailed
            The service has died.
        RunInterrupted
            The user wants to end.
        """
        try:
            return self._performed()
        except HookFailed:
            self._refuse_dead()
            raise
        except StackError as error:
            self._refuse_dead()
            what = error.reason if isinstance(error, ServiceFailed) else str(error)
            raise self._failure(what) from None

    def _refuse_dead(self) -> None:
        """Raise ServiceFailed when the cause is that the service has ended: it may be seen late."""
        time.sleep(CAUSE_SEEN_WITHIN_S)
        refuse_dead({self.instance.launch.labels.service: self.instance})

    def _performed(self) -> Any:
        if isinstance(self.hook, SqlHook):
            return self._sql(self.hook)
        if isinstance(self.hook, HttpHook):
            return self._http(self.hook)
        return self.instance.run(self.hook.command, self.hook.timeout_s, self.interrupted)

    def number(self) -> int:
        """Carry the hook out; return the count that it answered.

        Raises
        ------
        HookFailed
            As for :meth:`perform`, or the answer holds no whole number where it should be.
        """
        answer = self.perform()
        try:
            pointer = self.hook.number if isinstance(self.hook, HttpHook) else None
            return _whole(answer if pointer is None else find(json.loads(answer), pointer))
        except (KeyError, ValueError):
            where = f" at '{self.hook.number}'" if isinstance(self.hook, HttpHook) else ""
            raise self._failure(f"no whole number{where} in its answer: {_short(answer)}") from None

    def _sql(self, hook: SqlHook) -> Any:
        database = self.database()

        def run() -> Any:
            return [database.rows(statement) for statement in hook.statements][-1]

        try:
            rows = self._bounded(run)
        except BaseException:
            # What still runs on the server must not be met by the next trial.
            with contextlib.suppress(StackError):
                database.cancel()
            raise
        return rows[0][0] if rows else ""

    def _http(self, hook: HttpHook) -> str:
        deadline = time.monotonic() + hook.timeout_s
        while True:
            status, text = self._bounded(lambda: self._exchange(hook, deadline))
            if 200 <= status < 300:
                return text
            if status != BUSY or time.monotonic() > deadline:
                raise self._failure(f"answered {status}: {_short(text)}")
            go_on(self.interrupted, self._during)
            time.sleep(ASK_AGAIN_S)

    def _exchange(self, hook: HttpHook, deadline: float) -> tuple[int, str]:
        left_s = max(ASK_AGAIN_S, deadline - time.monotonic())
        port = self.instance.launch.control_port
        return exchange(port, hook.method, hook.path, None, left_s)

    def _bounded(self, work: Callable[[], Result]) -> Result:
        try:
            return patiently(work, self.interrupted, self._during, self.hook.timeout_s)
        except TimeoutError:
            raise self._failure(f"it took longer than {self.hook.timeout_s:g} s") from None

    @property
    def _during(self) -> str:
        return f"during the {self.purpose} of node '{self.hook.node}'"

    def _failure(self, what: str) -> HookFailed:
        return HookFailed(f"{self.purpose} of node '{self.hook.node}' ({self.hook}): {what}")


def _whole(value: Any) -> int:
    """Return a count as an integer; ValueError for anything that is no whole number."""
    if not _WHOLE_NUMBER.fullmatch(str(value).strip()):
        raise ValueError(value)
    return int(value)


def _short(answer: object) -> str:
    text = str(answer).strip()
    return repr(text[:SHOWN_CHARACTERS]) if text else "it was empty"
