"""The parts of a load on their hosts, as who asks for it sees them: begun, asked, ended."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from perflab.cluster import part_calls
from perflab.cluster.calls import called
from perflab.cluster.clocks import Offset, monotonic_ns, offset_of
from perflab.cluster.hosts import BENCH
from perflab.cluster.load_part import Seen
from perflab.errors import LoadError
from perflab.load.stopping import Progress

LOOK_S = 0.3
# Well below the silence after which a part ends.
HEAR_S = 5.0
READY_S = 90.0
TAKEN_S = 10.0
END_S = 15.0
TOLD_S = 2.0


@dataclass
class Host:
    """A host's worker and its part; ``first`` is the number of its first load worker."""

    name: str
    address: str
    token: str
    future: Any
    first: int = 0
    workers: int = 0
    has_begun: bool = False
    is_lost: bool = False
    progress: Progress = field(default_factory=Progress)


class Parts:
    """A part on every host: held from :meth:`start` to :meth:`close`.

    Parameters
    ----------
    client : distributed.Client
        Of the hosts' scheduler.
    names : mapping
        The hosts' names by the addresses of their workers.
    """

    def __init__(self, client: Any, names: Mapping[str, str]) -> None:
        self._client = client
        self._names = sorted(names.items(), key=lambda item: item[1])
        self.hosts: list[Host] = []
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def start(self, workers: int, wait_s: float) -> None:
        """Have every host hold its lock and its load workers.

        Parameters
        ----------
        workers : int
            Of each host; 0 for one on each of its client's cores.
        wait_s : float
            How long a host may wait for another measurement to end.

        Raises
        ------
        LoadError
            One of them cannot; nothing was sent.
        """
        self.hosts = [self._begun(*each, workers, wait_s) for each in self._names]
        self._keeper.start()
        began = time.monotonic()
        while not all(host.workers for host in self.hosts):
            for host in self.hosts:
                self._await(host, time.monotonic() - began - wait_s)
            time.sleep(LOOK_S)
        first = 0
        for host in self.hosts:
            host.first, first = first, first + host.workers

    def _begun(self, address: str, name: str, workers: int, wait_s: float) -> Host:
        token = secrets.token_hex(8)
        future = self._client.submit(
            part_calls.hold,
            token,
            workers,
            wait_s,
            key=f"perflab-load-{token}",
            workers=[address],
            allow_other_workers=False,
            resources={BENCH: 1},
            retries=0,
            pure=False,
        )
        return Host(name, address, token, future)

    def _await(self, host: Host, late_s: float) -> None:
        """Look whether a host has become ready, ``late_s`` after it should have begun to."""
        seen = self.ask(host, part_calls.see)
        if seen is not None:
            host.has_begun, host.workers = True, seen.workers
        elif host.has_begun or host.future.done():
            raise self.lost(host)
        elif late_s > TAKEN_S:
            raise LoadError(
                f"{host.name}: its worker has something else to do; wait for that "
                "(--wait SECONDS), or end it; nothing was sent"
            )
        if not host.workers and late_s > READY_S:
            raise LoadError(f"{host.name}: its load workers did not start; nothing was sent")

    def close(self) -> None:
        """End every part, and wait until no host holds one."""
        self._over.set()
        # One that was lost and still sends hears nothing more, and ends by itself.
        for host in (host for host in self.hosts if not host.is_lost):
            with contextlib.suppress(LoadError):
                self.ask(host, part_calls.end)
        deadline = time.monotonic() + END_S
        begun = [host.future for host in self.hosts if host.has_begun and not host.is_lost]
        while not all(future.done() for future in begun) and time.monotonic() < deadline:
            time.sleep(LOOK_S / 3)
        self._client.cancel([host.future for host in self.hosts], force=True)
        if self._keeper.is_alive():
            self._keeper.join(TOLD_S)

    def _keep(self) -> None:
        """Let the parts hear of us, also while nothing is sent."""
        while not self._over.wait(HEAR_S):
            for host in (host for host in self.hosts if not host.is_lost):
                # Who does not answer is found lost by who needs the answer.
                with contextlib.suppress(Exception):
                    self._call(host, part_calls.hear)

    def _call(self, host: Host, function: Callable[..., Any], *words: Any) -> Any:
        return self._client.sync(self._called, host, function, *words)

    async def _called(self, host: Host, function: Callable[..., Any], *words: Any) -> Any:
        """Call a host's part, but not for longer than its task lasts.

        Dask goes on to try a port that nobody listens on for as long as a call may take.
        """
        words = (self._client, host.address, function, host.token, *words)
        asked = asyncio.ensure_future(called(*words))
        while not (await asyncio.wait({asked}, timeout=LOOK_S))[0]:
            if host.future.done():
                asked.cancel()
                raise LoadError("its part is gone")
        return asked.result()

    def ask(self, host: Host, function: Callable[..., Any], *words: Any) -> Any:
        """Return what a function of ``part_calls`` says of a host's part.

        Raises
        ------
        LoadError
            The host is lost, or its part has failed.
        """
        try:
            return self._call(host, function, *words)
        except Exception as error:
            raise self.lost(host, error) from error

    def lost(self, host: Host, error: BaseException | None = None) -> LoadError:
        """Return the error that a host is lost, with what its task says of that."""
        host.is_lost = True
        deadline = time.monotonic() + TOLD_S
        # The part is gone a moment before its task has ended.
        while not host.future.done() and time.monotonic() < deadline:
            time.sleep(LOOK_S / 3)
        why = f"its worker at {host.address} does not answer ({error or 'its part is gone'})"
        if host.future.status == "finished":
            why = host.future.result() or why
        elif host.future.status == "error":
            failed = host.future.exception()
            is_dead = type(failed).__name__ == "KilledWorker"
            why = f"its worker is lost ({'it died, or cannot be reached' if is_dead else failed})"
        return LoadError(f"{host.name}: {why}")

    def see(self, hosts: Sequence[Host]) -> list[Seen]:
        """Look at the parts of some hosts, at all of them at the same time.

        Raises
        ------
        LoadError
            One of them is lost.
        """

        async def looks() -> list[Any]:
            asked = (self._called(host, part_calls.see) for host in hosts)
            return await asyncio.gather(*asked, return_exceptions=True)

        found: list[Any] = self._client.sync(looks)
        for host, seen in zip(hosts, found, strict=True):
            if not isinstance(seen, Seen):
                raise self.lost(host, seen)
        return found

    def clocks(self) -> list[Offset]:
        """Return how far the clock of each host is ahead, asked one host after the other.

        Raises
        ------
        LoadError
            A host is lost.
        """

        async def ahead(host: Host) -> Offset:
            return await offset_of(partial(called, self._client, host.address, monotonic_ns))

        found = []
        for host in self.hosts:
            try:
                found.append(self._client.sync(ahead, host))
            except Exception as error:
                raise self.lost(host, error) from error
        return found

    def stop(self, reason: str, within_s: float | None = None) -> None:
        """Have all hosts that are left end the load under way in order."""
        for host in self.hosts:
            if not host.is_lost:
                self.ask(host, part_calls.stop, reason, within_s)
