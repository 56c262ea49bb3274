"""What the hosts of a load have written, brought here and to this host's clock."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

from perflab.cluster import part_calls
from perflab.cluster.clocks import Offset
from perflab.cluster.load_part import SENDING, SENT, Sent
from perflab.cluster.parts import LOOK_S, Host, Parts
from perflab.errors import LoadError
from perflab.load.other_clock import shift_rows

# How long the others have to end when one host is lost.
RESCUE_S = 10.0


def fetched(parts: Parts, host: Host, place: Path, clock: Offset) -> Sent:
    """Bring a host's raw files to ``place``, with their instants by our clock.

    Returns
    -------
    Sent
        Its reports are still by its own clock.

    Raises
    ------
    LoadError
        The host is lost, or what it tells of its files is not so.
    """
    sent: Sent = parts.ask(host, part_calls.sent)
    own = range(host.first, host.first + host.workers)
    for worker, name, size in sent.files:
        if worker not in own or Path(name).name != name:
            raise LoadError(f"{host.name}: told of a file {worker}/{name} that is not its own")
        target = place / str(worker) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            while (done := file.tell()) < size:
                content = parts.ask(host, part_calls.piece, worker, name, done)
                if not content:
                    raise LoadError(f"{host.name}: {worker}/{name} ended before its end")
                file.write(content)
    for worker in own:
        shift_rows(place / str(worker), -clock.offset_ns)
    return sent


def rescue(parts: Parts, place: Path, clocks: Sequence[Offset]) -> None:
    """End the load on the hosts that are left, and keep what they have sent by then."""
    with contextlib.suppress(LoadError):
        parts.stop("a host was lost", within_s=1.0)
    deadline = time.monotonic() + RESCUE_S
    waiting = list(zip(parts.hosts, clocks, strict=True))
    while waiting and time.monotonic() < deadline:
        time.sleep(LOOK_S)
        waiting = [each for each in waiting if not _is_done(parts, *each, place)]


def _is_done(parts: Parts, host: Host, clock: Offset, place: Path) -> bool:
    """Return whether nothing is to be waited for on a host: it is kept, or lost."""
    with contextlib.suppress(LoadError, OSError):
        if host.is_lost:
            return True
        seen = parts.ask(host, part_calls.see)
        if seen is not None and seen.state == SENDING:
            return False
        if seen is not None and seen.state == SENT:
            fetched(parts, host, place, clock)
    return True
