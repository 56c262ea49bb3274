"""Which answers under load are like none that was checked before it, or far more frequent.

A status of 200 does not make an answer right: JSON-RPC and GraphQL report errors with it, and a
page to sign in comes with it, too. An answer that checks have seen is not right for that, either: a
circuit breaker opens under load. Where a class is far more frequent under load than in the checks,
and than on the other side, that is told as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter

from perflab.analysis.doubts.answer_classes import (
    ELEMENT,
    ERRORS,
    LIST,
    LONG,
    NUMBER,
    OBJECT,
    OF_A_SIZE,
    STATES,
    AnswerClass,
    Answers,
    above_of,
    in_words,
    is_near,
    is_of_elements,
)
from perflab.statistics.in_words import as_share

# Unseen classes may make up this share of the answers, or this many times the share of the checked
# answers that no other checked answer is like (Good and Turing: I. J. Good, Biometrika 40, 1953).
MOST_UNSEEN, TIMES_EXPECTED = 0.01, 3.0
# So often chance may make 1% look like more.
CHANCE = 0.01
# Where more of the checked answers have a key of their own, keys are data (ids, say).
MOST_OWN = 0.05
# A class has risen if its share is so many times what it may have been, and a point more.
TIMES_RISEN, POINT = 2.0, 0.01


@dataclass
class _Group:
    """Checked answers of one status, media type and form: how many, with which keys and sizes."""

    number: float = 0
    paths: Counter[str] = field(default_factory=Counter)
    states: Counter[tuple[str, str]] = field(default_factory=Counter)
    sizes: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    has_numbers: bool = False


class Checked:
    """The answers that were checked, one by one, before a load; ``number`` of them."""

    def __init__(self, checked: Iterable[Answers]) -> None:
        known = [*checked]
        self.number = sum(each.number for each in known)
        self._groups: dict[tuple[int, str, str], _Group] = {}
        for each in known:
            answer, group = each.answer, self._groups.setdefault(each.answer.group, _Group())
            group.number += each.number
            group.paths.update(dict.fromkeys(dict(answer.keys), each.number))
            group.states.update(dict.fromkeys(answer.keys, each.number))
            group.sizes[answer.size] += each.number
            group.has_numbers |= answer.form == NUMBER
        self._open = {name: self._of_data(name, known) for name in self._groups}
        own = sum(each.number for each in known if each.number == 1 and self._is_alone(each.answer))
        self.expected = own / self.number if self.number else 1.0

    def _of_data(self, name: tuple[int, str, str], known: Sequence[Answers]) -> set[str]:
        """Return the objects whose keys are data: often an answer has one of its own."""
        group = self._groups[name]
        own: Counter[str] = Counter()
        for each in known:
            if each.answer.group == name and each.number == 1:
                paths = {path for path, _ in each.answer.keys if group.paths[path] == 1}
                own.update({above_of(path) for path in paths})
        return {above for above, number in own.items() if number > MOST_OWN * group.number}

    def _is_alone(self, answer: AnswerClass) -> bool:
        """Return whether a checked answer, the only one of its class, is like no other."""
        group = self._groups[answer.group]
        paths = dict(answer.keys)
        return (
            group.number == 1
            or any(
                group.states[key] == 1 for key in answer.keys if self._may_be_new(answer, key[0])
            )
            or any(n == group.number - 1 for path, n in group.paths.items() if path not in paths)
            or (answer.form in OF_A_SIZE and not is_near(answer.size, group.sizes, but=answer.size))
        )

    def _counts(self, answer: AnswerClass, path: str) -> bool:
        is_open = self._open[answer.group]
        # What lies below a key that is data is data as well.
        above = accumulate(path.split(".")[:-1], "{}.{}".format)
        return path.rpartition(".")[2] in ERRORS or is_open.isdisjoint(["", *above])

    def _may_be_new(self, answer: AnswerClass, path: str) -> bool:
        """Return whether a key counts where it is new: of elements, those that all have may."""
        return not is_of_elements(path) and self._counts(answer, path)

    def why_unseen(self, answer: AnswerClass) -> str:
        """Return how an answer differs from all that were checked, as a predicate; else empty."""
        group = self._groups.get(answer.group)
        if group is None:
            return self._why_foreign(answer)
        if answer.form in (*OF_A_SIZE, NUMBER):
            if answer.form == NUMBER and group.has_numbers:
                return ""
            is_usual = answer.form in OF_A_SIZE and is_near(answer.size, group.sizes)
            return "" if is_usual else in_words(answer)
        paths = dict(answer.keys)
        new = [path for path in paths if path not in group.paths and self._may_be_new(answer, path)]
        # An element without a key that all had is another one only if it has others instead.
        other = {
            above_of(path) for path in paths if is_of_elements(path) and path not in group.paths
        }
        missing = [
            path
            for path, n in group.paths.items()
            if n == group.number
            and path not in paths
            and (not is_of_elements(path) or above_of(path) in other)
        ]
        if new or missing:
            above = min(map(above_of, [*new, *missing]), key=len)
            of_list = above.removesuffix(ELEMENT)
            if (state := paths.get(of_list)) and (of_list, state) not in group.states:
                return f"have {STATES[state]} in {of_list}"
            return in_words(answer, above)
        for path, state in answer.keys:
            if (path, state) not in group.states and self._may_be_new(answer, path):
                return f"have {STATES[state]} in {path}"
        return ""

    def _why_foreign(self, answer: AnswerClass) -> str:
        """Return how an answer of an unknown group differs: by status, type or form."""
        if answer.status not in {status for status, _, _ in self._groups}:
            return f"have status {answer.status}"
        types = {media_type for _, media_type, _ in self._groups}
        if answer.media_type not in types:
            instead = f" instead of {' or '.join(sorted(types))}" if len(types) == 1 else ""
            return f"are {answer.media_type or 'without a media type'}{instead}"
        forms = {form for status, media, form in self._groups if media == answer.media_type}
        # Nobody read them to the end, and errors are short.
        if answer.form == LONG and forms & {OBJECT, LIST}:
            return ""
        return in_words(answer)


@dataclass(frozen=True)
class Unseen:
    """Which share of answers under load is like none that was checked, in words with an example."""

    share: float
    words: str
    example: str

    def sentence(self, whose: str, checked: str) -> str:
        """Return the sentence, such as ``98% of new's answers under load have the keys ...``."""
        quoted = f", such as '{self.example}'" if self.example else ""
        return f"{_percent(self.share)} of {whose} {self.words}{quoted}: {checked}"


def _percent(share: float) -> str:
    return as_share(share, int(share < 0.0995))


def _is_more_than_few(unseen: float, number: float) -> bool:
    """Return whether more than 1% of all answers are certainly of the unseen kinds."""
    from scipy import special

    more = float(special.betainc(max(unseen, 1e-9), number - unseen + 1, MOST_UNSEEN))
    return unseen > MOST_UNSEEN * number and more <= CHANCE


def unseen(checked: Checked, loaded: Iterable[Answers]) -> Unseen | None:
    """Return the answers under load that are like no checked one; None where they are few.

    Few are 1% of the answers at most (an exact test at 1% allows for chance), or three times the
    share of the checked answers that are themselves like no other checked one.
    """
    answers = [*loaded]
    number = sum(each.number for each in answers)
    numbers: defaultdict[str, float] = defaultdict(float)
    examples: dict[str, str] = {}
    for each in answers:
        if words := checked.why_unseen(each.answer):
            numbers[words] += each.number
            examples.setdefault(words, each.example)
    share = sum(numbers.values()) / number if number else 0.0
    if not checked.number or share <= TIMES_EXPECTED * checked.expected:
        return None
    if not _is_more_than_few(sum(numbers.values()), number):
        return None
    (first, most), *others = sorted(numbers.items(), key=itemgetter(1), reverse=True)
    if not others or most >= 0.9 * sum(numbers.values()):
        return Unseen(share, first, examples[first])
    words = f"are like none that was checked; {_percent(most / number)} {first}"
    return Unseen(share, words, examples[first])


def risen(
    checked: Sequence[Answers],
    loaded: Sequence[Answers],
    others: Sequence[Sequence[Answers]],
    when: str = "to one user before",
) -> Unseen | None:
    """Return the answers under load that the checks of their side have seen much more rarely.

    ``when`` says which were checked. ``others`` are the answers under load of the other sides: what
    rises on all of them alike is how the service works; without any other side, all that rises is
    told. None where nothing has risen.
    """
    before, now = _shares(checked), _shares(loaded)
    number, loads = (sum(each.number for each in answers) for answers in (checked, loaded))
    elsewhere = [_shares(of_side) for of_side in others if of_side]
    if not number or (others and not elsewhere):
        return None
    usual = max(before, key=before.__getitem__)
    for kind, share in sorted(now.items(), key=itemgetter(1), reverse=True):
        share_before = before.get(kind, 0.0)
        least = min((of.get(kind, 0.0) for of in elsewhere), default=0.0)
        may_be = _at_most(share_before * number, number)
        # All others are at most so many: a share of few answers may be high by chance.
        certain = 1.0 - _at_most((1.0 - share) * loads, loads)
        if certain <= TIMES_RISEN * max(may_be, least) + POINT:
            continue
        one = next(each for each in loaded if each.answer.coarse == kind)
        alike = {each.answer.size: 1.0 for each in checked if each.answer.group == one.answer.group}
        if one.answer.form in OF_A_SIZE and is_near(one.answer.size, alike):
            continue
        words = f"have status {kind[0]}" if kind[0] != usual[0] else in_words(one.answer)
        seen = f"{words}, {_percent(share_before)} {when}"
        seen += f", {_percent(least)} elsewhere" * bool(elsewhere)
        return Unseen(share, seen, one.example)
    return None


def _shares(answers: Iterable[Answers]) -> dict[tuple[object, ...], float]:
    """Return the share of each coarse class."""
    numbers: defaultdict[tuple[object, ...], float] = defaultdict(float)
    for each in answers:
        numbers[each.answer.coarse] += each.number
    whole = sum(numbers.values())
    return {kind: number / whole for kind, number in numbers.items()} if whole else {}


def _at_most(count: float, number: float) -> float:
    """Return the share that so many may come from, at 99% (Clopper and Pearson, 1934)."""
    from scipy import special

    return 1.0 if count >= number else float(special.betaincinv(count + 1, number - count, 0.99))
