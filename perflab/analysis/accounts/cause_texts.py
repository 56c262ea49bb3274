"""How an entry of an account and its difference are said."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from perflab.analysis.accounts.entries import METRIC, Entry, Key
from perflab.statistics.in_words import number

# So much of a statement is said; all of it is in the account.
LONGEST = 80


def _shown(statement: str) -> str:
    return statement if len(statement) <= LONGEST else f"{statement[: LONGEST - 1]}…"


def most_changed(counts: Mapping[Key, Entry], way: float) -> str:
    """Return the statement whose number changes most that way: ``SELECT ... (+20)``."""
    changes = _changes(counts)
    text = (max if way > 0 else min)(changes, key=changes.__getitem__)
    return f"{_shown(text)} ({changes[text]:+.3g})"


def replaced(times: Mapping[Key, Entry], counts: Mapping[Key, Entry]) -> str:
    """Return which statement is sent instead of which other one, the dearest of each; or nothing.

    Such a one is sent more often than before, and the other one less often.
    """
    changes = _changes(counts)
    more, fewer = ([name for name, change in changes.items() if up * change > 0] for up in (1, -1))

    def ms(name: str) -> float:
        one = times["statement", name]
        return max(one.new, one.old)

    if not (more and fewer):
        return ""
    texts = max(more, key=ms), max(fewer, key=ms)
    if len({*map(_shown, texts)}) == 1:
        # What they have in common says nothing: they differ from a word on.
        words = [text.split(" ") for text in texts]
        alike = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*words, strict=False))
        )
        alike = min(alike, len(words[0]) - 1, len(words[1]) - 1)
        texts = f"…{' '.join(words[0][alike:])}", f"…{' '.join(words[1][alike:])}"
    return " instead of ".join(map(_shown, texts))


def _changes(counts: Mapping[Key, Entry]) -> dict[str, float]:
    return {name: one.change for (kind, name), one in counts.items() if kind == "statement"}


def instead(entry: Entry, what: str) -> str:
    """Return ``21 statements a request instead of 2``."""
    return f"{entry.new:.2g} {what} instead of {entry.old:.2g}"


def byte_count(count: float) -> str:
    """Return ``400 kB``."""
    return f"{number(count / 1e3)} kB" if count >= 1e3 else f"{count:.0f} bytes"


def entry_name(key: Key) -> str:
    """Return what an entry of an account is, in words."""
    kind, name = key
    return {
        "function": f"{name}, CPU",
        "cpu": "the service's CPU",
        "store": f"{name}, CPU beside its statements",
        "wait": f"waits for {name}",
        "response": "the response time",
        "not explained": "in none of these",
    }.get(kind, name)


def entry_text(key: Key, entry: Entry, library: str = "") -> str:
    """Return ``serialize (views.py) takes 0.21 ms of CPU instead of 0.05, mostly in json``."""
    kind, name = key
    sizes = f"{number(entry.new)} ms{{}} instead of {number(entry.old)}"
    function = f"{name} takes {sizes.format(' of CPU')}"
    if not entry.old:
        function = f"{name}, not seen on the other side, takes {number(entry.new)} ms of CPU"
    elif not entry.new:
        function = f"{name} is not seen any more; it took {number(entry.old)} ms of CPU"
    forms = {
        "function": f"{function}, mostly in {library}" if library else function,
        "cpu": f"the service takes {sizes.format(' of CPU')}",
        "statement": f"{_shown(name)} takes {sizes.format('')}",
        "store": f"{name}, beside its statements, takes {sizes.format(' of CPU')}",
        "wait": f"waits for {name}: {sizes.format('')}",
        METRIC: f"{name}, as the service counts it: {sizes.format('')}",
    }
    return forms[kind]
