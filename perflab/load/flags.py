"""The flags of a load: what each says, in which panel of the help, and its names.

The commands show them, and the models of a load (:mod:`perflab.load.options`) describe their fields
with the same texts. They stand apart from the models, whose import is slow.
"""

from __future__ import annotations

from typing import NamedTuple

ARRIVALS, REQUEST, ENDING = "Arrivals", "Request", "Ending"


class Flag(NamedTuple):
    """A flag of a command; without names it is called after its parameter."""

    text: str
    panel: str
    names: tuple[str, ...] = ()


# By the name of the parameter, without the unit.
FLAGS = {
    "users": Flag("closed loop: users who wait for answers", ARRIVALS),
    "think_time": Flag("seconds a user waits after an answer", ARRIVALS),
    "rate": Flag("open loop: requests a second", ARRIVALS),
    "arrivals": Flag("how requests of an open loop arrive: constant or poisson", ARRIVALS),
    "warmup": Flag("seconds before the load, recorded apart", ARRIVALS),
    "script": Flag("users of a Python class: FILE.py:Class (see perflab.load.users)", ARRIVALS),
    "stages": Flag("open loop in stages: 100:10,100-500:30", ARRIVALS),
    "burst": Flag("this many requests at one instant", ARRIVALS),
    "seed": Flag("seed of Poisson arrivals, and of a script", ARRIVALS),
    "pacing": Flag("seconds between a user's requests", ARRIVALS),
    "ramp": Flag("seconds over which users join", ARRIVALS),
    "method": Flag("GET, or POST with a body", REQUEST, ("--method", "-X")),
    "headers": Flag(
        "'Name: value', or 'Name: env:VARIABLE'; repeatable", REQUEST, ("--header", "-H")
    ),
    "header_file": Flag("file with lines 'Name: value', which are shown nowhere", REQUEST),
    "secret": Flag(
        "name of a header, variable or parameter whose value is secret; repeatable", REQUEST
    ),
    "body": Flag("body, or @FILE (text or any bytes)", REQUEST),
    "expect_status": Flag("another status is a failure (200); several: 201,409", REQUEST),
    "expect_body": Flag("must occur in the body of every answer", REQUEST),
    "connection": Flag("a connection for many requests (keep-alive), or per-request", REQUEST),
    "timeout": Flag("seconds a request may take", REQUEST),
    "allow_targets": Flag(
        "a host other than loopback you may load; repeatable", REQUEST, ("--allow-target",)
    ),
    "connections": Flag("cap on open connections (0: users, or 2000)", REQUEST),
    "expect_bytes": Flag("length of every body (-1: any)", REQUEST),
    "redirects": Flag("redirects to follow", REQUEST),
    "stream": Flag("the answer is a stream: sse (server-sent events) or ndjson", REQUEST),
    "min_chunks": Flag("fewest chunks of a stream (default 1)", REQUEST),
    "end_marker": Flag(
        "last event of a stream: [DONE]; of ndjson a member: '\"done\":true'", REQUEST
    ),
    "http2": Flag("HTTP/2 only", REQUEST, ("--http2",)),
    "insecure": Flag("do not verify TLS", REQUEST, ("--insecure",)),
    "ca_file": Flag("trust this CA bundle", REQUEST, ("--ca-file", "--ca")),
    "duration": Flag("end after seconds (default 10)", ENDING, ("--duration", "-d")),
    "requests": Flag("end a closed loop after this many", ENDING, ("--requests", "-n")),
    "stop_after_failures": Flag(
        "end the load at this many failures, of all workers together (0: never)", ENDING
    ),
    "objectives": Flag(
        "an objective: 'p99<1000ms'; of streams 'ttft_p95<500ms', 'gap_p99<100ms'; repeatable",
        ENDING,
        ("--objective",),
    ),
}


def flag_of(name: str) -> str:
    """Return the flag of a parameter: ``--think-time`` of ``think_time_s``."""
    word = name.removesuffix("_s")
    names = FLAGS[word].names if word in FLAGS else ()
    return names[0] if names else f"--{word.replace('_', '-')}"
