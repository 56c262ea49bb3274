"""The codec benchmark: one step of one codec with one message, in this process.

The published message is a string, an int, a float and a list, and is 132 bytes as json, 116 as
orjson and 64 as protobuf; its content is not published, so this one was made to have those sizes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from itertools import repeat
from typing import Any

from chat.codecs import CODERS, Coder, Frame
from chat.envelopes import Message, Published, Shape

TEXT = "Did anyone look at the latency of the second node? It doubled at noon — see the chart."
MESSAGES: dict[str, tuple[str, Shape]] = {
    "published": (
        "published",
        Published(
            "a message of the benchmark.",
            482913,
            3.14159,
            [128, 256, 311, 427, 512, 640, 733, 811, 902, 999],
        ),
    ),
    "chat": ("envelope", Message("channel7", "user183", 1_004_711, TEXT)),
}


def measure(codec: str, message: str, operation: str, loops: int) -> tuple[float, int]:
    """Run an operation ``loops`` times; return the time of one in ns, and the frame's bytes."""
    shape, value = MESSAGES[message]
    coder = CODERS[codec][shape]
    frame = coder.encode(value)
    size = len(frame.encode() if isinstance(frame, str) else frame)
    step, argument = step_of(coder, operation, value, frame)
    return _timed(step, argument, loops) / loops, size


def step_of(
    coder: Coder, operation: str, value: Shape, frame: Frame
) -> tuple[Callable[[Any], object], Any]:
    """Return what an operation calls, and with what."""
    if operation == "serialize":
        return coder.dumps, coder.native(value)
    if operation == "deserialize":
        return coder.loads, frame
    if operation == "serialize_values":
        return coder.encode, value
    return coder.decode, frame


def _timed(step: Callable[[Any], object], argument: Any, loops: int) -> int:
    gc.disable()
    try:
        begin_ns = time.perf_counter_ns()
        for _ in repeat(None, loops):
            step(argument)
        return time.perf_counter_ns() - begin_ns
    finally:
        gc.enable()
