"""Checks that an interrupted run can be resumed: both parts must be measured alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from perflab.errors import ResumeRefused
from perflab.recordings.schema import RunRecord

ABSENT = "nothing"


def check_same(before: RunRecord, now: RunRecord) -> None:
    """Refuse to continue a run that would now be measured in another way.

    ``before`` is the record of the interrupted run; ``now`` is that of a new run with the same
    plan. ResumeRefused names every difference, with both values and the way out.
    """
    _refuse(before, [*_code(before, now), *_of_the_machine(before, now), *_treatments(before, now)])


def check_services(
    before: RunRecord, images: Mapping[str, str], versions: Mapping[str, Mapping[str, str]]
) -> None:
    """Refuse to continue a run whose services have other images or other packages now.

    ``images`` and ``versions`` are those of each service now.
    """
    changed = [
        f"service {difference}: install the version that the run had; its commit pins it"
        for difference in differences(before.versions, dict(versions))
    ]
    if not changed:
        changed = [
            f"the image of service {difference}: bring the earlier image back"
            for difference in differences(before.images, dict(images))
        ]
    _refuse(before, changed)


def _refuse(before: RunRecord, changes: Sequence[str]) -> None:
    if not changes:
        return
    lines = "\n".join(f"  - {line}" for line in changes)
    raise ResumeRefused(
        f"run {before.run_id} cannot be continued: its parts would not be comparable. Changed:\n"
        f"{lines}\nUndo that, or start a new run"
    )


def _code(before: RunRecord, now: RunRecord) -> Iterator[str]:
    old, new = before.code.get("fingerprint"), now.code.get("fingerprint")
    if old == new:
        return
    places = differences(before.code.get("sources", {}), now.code.get("sources", {}))
    where = ", ".join(difference.place for difference in places) or "its sources"
    commit = before.code.get("commit", "")
    dirty = " with the changes that were not committed then" if before.code.get("dirty") else ""
    yield (
        f"the code that measures, in {where} (fingerprint {old} -> {new}): go back to commit "
        f"{commit[:12]}{dirty}"
    )


def _of_the_machine(before: RunRecord, now: RunRecord) -> Iterator[str]:
    """Yield how machine, software and order of trials differ, each with the way back."""
    # A run that was decided early has fewer blocks than its plan.
    ended = before.until_decided is not None and before.until_decided.ended
    order = now.order[: before.blocks] if ended else now.order
    old, new = before.environment, now.environment
    for name, first, second, way_out in (
        ("machine", old.get("machine", {}), new.get("machine", {}), "go on with the first machine"),
        ("python", old.get("python"), new.get("python"), "set up the first Python again"),
        ("package", old.get("packages"), new.get("packages"), "'make setup' at the run's commit"),
        ("backend", before.backend, now.backend, "choose it with --backend"),
        ("network_path", before.network_path, now.network_path, "choose the first backend"),
        ("placement", before.placement, now.placement, "give the lab the first cores"),
        ("order", before.order, order, "use the run's parameters and seed"),
    ):
        for difference in differences(first, second, name):
            yield f"{difference}: {way_out}"


def _treatments(before: RunRecord, now: RunRecord) -> Iterator[str]:
    old, new = _words(before), _words(now)
    if sorted(old) != sorted(new):
        yield f"the treatments ({', '.join(old)} -> {', '.join(new)}): choose the same again"
        return
    for name in old:
        for difference in differences(old[name], new[name], f"treatment '{name}'"):
            yield f"{difference}: undo this change"


def _words(record: RunRecord) -> dict[str, dict[str, Any]]:
    return {
        item.name: {"levels": item.levels, **record.whole(item.name)} for item in record.treatments
    }


class Difference(NamedTuple):
    """A value that changed; ``place`` is its path of keys and names, joined by dots."""

    place: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.place} ({self.before} -> {self.after})"


def differences(before: Any, after: Any, place: str = "") -> Iterator[Difference]:
    """Yield every difference; a value that exists on one side only is ``nothing`` on the other.

    The place of a list's member is its ``name``, or its number where it has none.
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
