"""Where two values that came from JSON differ, down to the single value."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

ABSENT = "nothing"


class Difference(NamedTuple):
    """``place`` (keys and names, joined by dots) holds one value before and another after."""

    place: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.place} ({self.before} -> {self.after})"


def differences(before: Any, after: Any, place: str = "") -> Iterator[Difference]:
    """Yield every value that differs; one that is on one side only is ``nothing`` on the other.

    Members of lists that have a ``name`` are called by it, others by their number.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from differences(
                before.get(key, ABSENT), after.get(key, ABSENT), f"{place}.{key}".lstrip(".")
            )
    elif isinstance(before, list) and isinstance(after, list):
        for number, pair in enumerate(zip_longest(before, after, fillvalue=ABSENT)):
            yield from differences(*pair, f"{place}.{_name(pair, number)}".lstrip("."))
    elif before != after:
        yield Difference(place, before, after)


def _name(pair: tuple[Any, Any], number: int) -> str:
    names = {item.get("name") for item in pair if isinstance(item, dict)}
    return str(names.pop()) if len(names) == 1 and None not in names else str(number)
