"""What the first failure of each kind said: a class alone does not tell what to mend."""

from __future__ import annotations

MOST_KINDS = 32
LONGEST_TEXT = 300


class FirstErrors:
    """Texts by error class and status; bounded, so that no server can fill the memory.

    Asked only where a request has failed: a request that succeeds pays nothing for it.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, int], str] = {}

    def note(self, kind: str, text: str, status: int = 0) -> None:
        """Keep the text if it is the first of its kind; control characters become spaces."""
        if (kind, status) in self._texts or len(self._texts) == MOST_KINDS:
            return
        printable = "".join(each if each.isprintable() else " " for each in text[:LONGEST_TEXT])
        self._texts[kind, status] = " ".join(printable.split())

    def found(self) -> list[tuple[str, int, str]]:
        """Return (class, status, text) of each kind."""
        return [(kind, status, text) for (kind, status), text in self._texts.items()]
