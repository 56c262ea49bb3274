"""Lines out of parts of any length, none of them longer than allowed."""

from __future__ import annotations

from collections.abc import Iterator

from llm_proxy.refusal import Refused


class Lines:
    """Cuts what arrives into lines; holds at most one that is not complete yet."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that are complete now, without their ends.

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
        for line in complete:
            self._check(len(line))
            yield line.removesuffix(b"\r")
        self._check(self._held)

    def _check(self, length: int) -> None:
        if length > self._longest:
            raise Refused(
                502, "chunk_too_large", f"the upstream sent a chunk of over {self._longest} bytes"
            )
