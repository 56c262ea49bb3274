"""What wrong logins may cost: after one, passwords are verified behind everybody's back.

Whether a login is right is known only after hashing, which with ``login_in = loop`` nobody else
survives unharmed: eight wrong logins at a time held the others up for seconds. So for a while after
a wrong login passwords are verified one at a time, in a thread that gives way to the loop, and few
may wait for that. A load whose logins are right never comes here.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from chat.refusal import TooManyLogins

LASTS_S = 60.0
# The last of so many waits some 20 s with the default hash; who is right among them gets in.
MOST_WAITING = 64
# The loop gets nine times as much of a core that both want; the right login comes about, too.
NICENESS = 10


class Suspicion:
    """Roused by a wrong login."""

    def __init__(self) -> None:
        self._until_s = 0.0
        self._waiting = 0
        # Its thread begins with the first password that it is given.
        self._verifier = ThreadPoolExecutor(1, "suspicion", initializer=_give_way)

    def rouse(self) -> None:
        """Be suspicious for a while."""
        self._until_s = time.monotonic() + LASTS_S

    def calm(self) -> None:
        """Be suspicious no more."""
        self._until_s = 0.0

    @property
    def is_roused(self) -> bool:
        """Return whether a login was wrong lately."""
        return time.monotonic() < self._until_s

    async def verify(self, verify: Callable[[str, str], bool], known: str, password: str) -> bool:
        """Verify a password when it is its turn.

        Raises
        ------
        TooManyLogins
            Too many wait already.
        """
        if self._waiting >= MOST_WAITING:
            raise TooManyLogins("logins are failing, and too many wait: try again in some seconds")
        self._waiting += 1
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._verifier, verify, known, password)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Verify no more."""
        self._verifier.shutdown(wait=False, cancel_futures=True)


def _give_way() -> None:
    # On Linux a priority is the thread's own.
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
