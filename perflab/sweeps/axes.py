"""The values that a parameter takes in turn: a list, a range, or numbers drawn by a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from perflab.sweeps.document import Problems, Value

MOST_VALUES = 5_000
DIGITS = 6
RANGES = {
    "range": "[FIRST, LAST, STEP]",
    "linear": "[FIRST, LAST, COUNT]",
    "geometric": "[FIRST, LAST, COUNT]",
}
DRAWS = {
    "uniform": "[LOW, HIGH]",
    "log_uniform": "[LOW, HIGH]",
    "integers": "[LOW, HIGH]",
    "choice": "[A, B, ...]",
}


@dataclass(frozen=True)
class Setting:
    """A parameter's value, and the line that says so."""

    value: object
    line: int


def values_of(axis: Value, name: str, problems: Problems) -> list[Setting]:
    """Return the values of an axis; an axis that is wrong has none, and is told of."""
    if isinstance(axis.content, list):
        return _listed(axis.content, axis.line, name, problems)
    word, given = _one_rule(axis, name, RANGES, problems)
    numbers = _numbers(given, 3, name, f"{word}: {RANGES[word]}", problems) if given else None
    if numbers is None:
        return []
    try:
        found = {"range": _range, "linear": _linear, "geometric": _geometric}[word](*numbers)
    except ValueError as error:
        problems.add(axis.line, f"{name}: {word}: {error}")
        return []
    return [Setting(value, axis.line) for value in found]


def drawn(axis: Value, name: str, count: int, seed: str, problems: Problems) -> list[Setting]:
    """Return ``count`` values drawn at random: always the same ones for one seed and one name."""
    source = random.Random(f"{seed}/{name}")
    if isinstance(axis.content, list):
        choice = _listed(axis.content, axis.line, name, problems)
        return [source.choice(choice) for _ in range(count)] if choice else []
    word, given = _one_rule(axis, name, DRAWS, problems)
    if given is None:
        return []
    if word == "choice":
        items = given.content if isinstance(given.content, list) else [given]
        choice = _listed(items, axis.line, name, problems)
        return [source.choice(choice) for _ in range(count)] if choice else []
    numbers = _numbers(given, 2, name, f"{word}: {DRAWS[word]}", problems)
    try:
        draw = _drawing(word, numbers, source) if numbers else None
    except ValueError as error:
        problems.add(axis.line, f"{name}: {word}: {error}")
        return []
    return [Setting(draw(), axis.line) for _ in range(count)] if draw else []


def _listed(items: Sequence[Value], line: int, name: str, problems: Problems) -> list[Setting]:
    if not items:
        problems.add(line, f"{name}: the list is empty; give at least one value")
    if len(items) > MOST_VALUES:
        problems.add(line, f"{name}: has {len(items):,} values; {MOST_VALUES:,} are the most")
        return []
    return [Setting(item.plain(), item.line) for item in items]


def _one_rule(
    axis: Value, name: str, rules: dict[str, str], problems: Problems
) -> tuple[str, Value | None]:
    """Return the one rule that a table names, and what is given to it."""
    ways = " or ".join(f"{{{word}: {form}}}" for word, form in rules.items())
    if not isinstance(axis.content, dict) or len(axis.content) != 1:
        problems.add(axis.line, f"{name}: give a list of values, or {ways}")
        return "", None
    ((word, entry),) = axis.content.items()
    if word not in rules:
        problems.add(entry.line, f"{name}: no rule '{word}'; give a list of values, or {ways}")
        return "", None
    return word, entry.value


def _numbers(
    given: Value, count: int, name: str, form: str, problems: Problems
) -> list[int | float] | None:
    items = given.content if isinstance(given.content, list) else []
    numbers = [
        item.content
        for item in items
        if isinstance(item.content, (int, float)) and not isinstance(item.content, bool)
    ]
    if len(items) == len(numbers) == count:
        return numbers
    problems.add(given.line, f"{name}: write {form}, {count} numbers")
    return None


def _exact(number: float) -> Fraction:
    """Return what was written: 0.1 is a tenth, whatever a float makes of it."""
    return Fraction(Decimal(repr(number)))


def _typed(number: Fraction, like: Sequence[int | float]) -> int | float:
    whole = all(isinstance(each, int) for each in like)
    return int(number) if whole and number.denominator == 1 else float(number)


def _range(first: float, last: float, step: float) -> list[float]:
    if not step or (last - first) * step < 0:
        raise ValueError(f"from {first} to {last} no step of {step} leads")
    distance = (_exact(last) - _exact(first)) / _exact(step)
    _check_count(math.floor(distance) + 1)
    given = (first, last, step)
    return [
        _typed(_exact(first) + place * _exact(step), given)
        for place in range(math.floor(distance) + 1)
    ]


def _linear(first: float, last: float, count: float) -> list[float]:
    steps = _check_count(count) - 1
    step = (_exact(last) - _exact(first)) / steps
    return [_typed(_exact(first) + place * step, (first, last)) for place in range(steps + 1)]


def _geometric(first: float, last: float, count: float) -> list[float]:
    if first <= 0 or last <= 0:
        raise ValueError("both ends must be above 0")
    steps = _check_count(count) - 1
    inner = [_rounded(first * (last / first) ** (place / steps)) for place in range(1, steps)]
    return [first, *inner, last]


def _check_count(count: float) -> int:
    if not isinstance(count, int) or not 1 < count <= MOST_VALUES:
        if isinstance(count, int) and count == 1:
            raise ValueError("one value is no range; give it as a parameter")
        raise ValueError(f"{count} values; a whole number from 2 to {MOST_VALUES:,} is allowed")
    return count


def _drawing(
    word: str, numbers: Sequence[int | float], source: random.Random
) -> Callable[[], int | float]:
    low, high = numbers
    if low >= high:
        raise ValueError(f"{low} is not below {high}")
    if word == "uniform":
        return lambda: _rounded(source.uniform(low, high))
    if word == "log_uniform":
        if low <= 0:
            raise ValueError("both ends must be above 0")
        return lambda: _rounded(math.exp(source.uniform(math.log(low), math.log(high))))
    if not (isinstance(low, int) and isinstance(high, int)):
        raise ValueError("both ends must be whole numbers")
    return lambda: source.randint(low, high)


def _rounded(number: float) -> float:
    """Return a number as one would type it."""
    return float(f"{number:.{DIGITS}g}")
