"""Lines out of parts of any length, none of them longer than allowed."""

from __future__ import annotations

from llm_proxy.refusal import Refused


class Lines:
    """Cuts what arrives into lines; holds at most one that is not complete yet."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now, without their ends.

        Raises
        ------
        Refused
            One is longer than allowed.
        """
        *complete, rest = data.split(b"\n")
        if complete:
            complete[0] = b"".join([*self._parts, complete[0]])
            self._parts, self._held = [], 0
        self._parts.append(rest)
        self._held += len(rest)
        if self._held > self._longest or any(len(line) > self._longest for line in complete):
            raise Refused(
                502, "chunk_too_large", f"the upstream sent a chunk of over {self._longest} bytes"
            )
        return [line.removesuffix(b"\r") for line in complete]

    def rest(self) -> bytes:
        """Return what came after the last line's end."""
        return b"".join(self._parts)
