"""``perflab load --scheduler``: what several hosts cannot send, and who sends it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perflab.load.once import Ready
    from perflab.load.options import Options

# The files that they name lie here, and need not lie on the hosts.
FILES = ("script", "body_file", "ca_file", "cert")


def check(options: Options) -> None:
    """Note what cannot be sent from several hosts."""
    from perflab.errors import TargetRefused
    from perflab.load.targets import is_loopback, split

    problems = options.problems
    for name in FILES:
        if getattr(options, name):
            problems.append(
                f"--{name.replace('_', '-')} does not go with --scheduler: its file need not be on "
                "the hosts; run perflab load on each of them, or leave it out"
            )
    try:
        host = split(options.url)[0].host
    except TargetRefused:
        return
    if is_loopback(host):
        problems.append(
            f"{options.url}: every host would load itself; give an address that all hosts reach, "
            "and name its host with --allow-target"
        )


def begin(scheduler: str) -> Ready:
    """Return what gets a load sent: by this host, or by those of a scheduler's workers."""
    if not scheduler:
        from perflab.load.once import ready

        return ready
    from perflab.cluster.load_hosts import on_hosts

    return on_hosts(scheduler, lambda text: print(text, file=sys.stderr, flush=True))
