"""The bound on what one worker holds of answers: bodies that are kept, chunks of streams."""

from __future__ import annotations

KEPT_BYTES = 64 * 1024 * 1024
NO_ROOM = (
    f"a worker keeps {KEPT_BYTES >> 20} MiB of its users' answers at a time, and this body did not "
    "fit: let go of answers that were read, ask with keep_body=False for those that nobody reads, "
    "or send the load with more workers"
)
NO_ROOM_FOR_CHUNKS = (
    f"a worker holds {KEPT_BYTES >> 20} MiB of streams under way at a time (12 bytes for each "
    "chunk, and bodies that a script keeps), and this one did not fit: send the load with more "
    "workers, or ask for shorter streams"
)


class Room:
    """The bytes that one worker may still hold."""

    def __init__(self, size_bytes: int = KEPT_BYTES) -> None:
        self.left_bytes = size_bytes
