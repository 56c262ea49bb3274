"""What can go wrong with an answer, on purpose."""

from __future__ import annotations

# none: nothing; busy: refused with 503; silent: never a word; stalls: falls silent after some
# tokens; dies: the connection ends in the middle; error: an error in the stream; malformed: a chunk
# that is no JSON; huge: one chunk of huge_bytes; endless: tokens for ever; unfinished: ends in
# order, without its last chunk.
FAULTS = (
    "none", "busy", "silent", "stalls", "dies", "error", "malformed", "huge", "endless",
    "unfinished",
)  # fmt: skip
FAULT_HEADER, AFTER_HEADER = "x-fault", "x-fault-after"
MALFORMED = '{"model": "stand-in", "choices": [{"delta": {"content": "half a chu'
