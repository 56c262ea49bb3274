"""What a run compares: its pairs of treatments, and an order that puts them side by side."""

from __future__ import annotations

from collections.abc import Iterator

from perflab.recordings import ContrastPair, RunRecord


def compared_pairs(record: RunRecord) -> list[tuple[str, str]]:
    """Return every pair of treatments that some claim of the run compares, each pair once.

    Where a claim takes several treatments a side, those that are alike in all other factors.
    """
    found: dict[frozenset[str], tuple[str, str]] = {}
    for contrast in record.contrasts:
        if contrast.not_testable:
            continue
        for sides in filter(None, (contrast, contrast.interaction)):
            for pair in _matched(record, sides):
                found.setdefault(frozenset(pair), pair)
    return list(found.values())


def _matched(record: RunRecord, sides: ContrastPair) -> Iterator[tuple[str, str]]:
    above, below = (record.selected(each) for each in (sides.numerator, sides.denominator))
    varied = {*sides.numerator, *sides.denominator}
    rest = {
        item.name: {factor: level for factor, level in item.levels.items() if factor not in varied}
        for item in record.treatments
    }
    alone = len(above) == len(below) == 1
    for one in above:
        yield from ((one, other) for other in below if alone or rest[one] == rest[other])


def side_by_side(record: RunRecord) -> list[str]:
    """Return the treatments' names, each followed by one it is compared with where it can be.

    Otherwise in the order of the record.
    """
    partners: dict[str, list[str]] = {item.name: [] for item in record.treatments}
    for one, other in compared_pairs(record):
        partners[one].append(other)
        partners[other].append(one)
    recorded = list(partners)
    placed: dict[str, None] = {}
    waiting = recorded[::-1]
    while waiting:
        name = waiting.pop()
        if name not in placed:
            placed[name] = None
            waiting += sorted(partners[name], key=recorded.index, reverse=True)
    return list(placed)
