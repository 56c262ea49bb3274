"""How many answers of each class a load got, from its rows and the answers that were kept.

The classes of all answers of a status and a length (within 10%) are those of the answers among them
that have the bytes of a kept one, in the same shares.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from operator import itemgetter

import numpy as np

from perflab.analysis.doubts.answer_classes import AnswerClass, Answers, class_of, example_of
from perflab.load.body_secrets import shown_answer
from perflab.load.clients.encodings import unpacked
from perflab.load.clients.kept_replies import FIRST, STEP, Kept, kept_in
from perflab.load.records.names import TEMPLATE_NAMES, names_in
from perflab.load.records.result import LoadResult

# So many bytes of a body are read for an example.
READ = 4_000
# Answers by the name of the request, which is empty without a script.
ByName = Mapping[str, list[Answers]]


def answers_in(result: LoadResult) -> ByName:
    """Return the successes of the measure stage by class, most first."""
    # By name, status and about the same length: all, and those of each class that are known.
    totals: Counter[tuple[str, int, int]] = Counter()
    known: defaultdict[tuple[str, int, int], Counter[AnswerClass]] = defaultdict(Counter)
    examples: dict[tuple[str, AnswerClass], str] = {}
    names = [names_in(place, TEMPLATE_NAMES) or ("",) for place in result.places]
    classes: dict[tuple[int, int], AnswerClass] = {}
    for worker, place in enumerate(result.places):
        for each in kept_in(place):
            answer, example = _classed(each)
            classes[worker, each.number] = answer
            examples.setdefault((names[worker][each.template], answer), example)
    for worker, rows in result.measured_by_worker() if classes else ():
        for (template, status, length, kept), count in _counted(rows):
            where = names[worker][template], status, length
            totals[where] += count
            if (worker, kept) in classes:
                known[where][classes[worker, kept]] += count
    by_name: defaultdict[str, Counter[AnswerClass]] = defaultdict(Counter)
    for where, counts in known.items():
        for answer, count in counts.items():
            share = count / counts.total()
            by_name[where[0]][answer] += totals[where] * share  # type: ignore[assignment]
    return {
        name: [Answers(each, n, examples[name, each]) for each, n in numbers.most_common()]
        for name, numbers in by_name.items()
    }


def first_answers(result: LoadResult) -> ByName:
    """Return the first twenty successes of each name, of whatever stage."""
    found: defaultdict[str, list[tuple[int, Kept]]] = defaultdict(list)
    for place, rows in zip(result.places, result.rows, strict=True):
        names = names_in(place, TEMPLATE_NAMES) or ("",)
        kept = {each.number: each for each in kept_in(place)}
        known = np.flatnonzero((rows["error"] == 0) & np.isin(rows["kept"], [*kept]))
        for code in np.unique(rows["template"][known]):
            for row in rows[known[rows["template"][known] == code][:FIRST]]:
                found[names[code]].append((int(row["done_ns"]), kept[int(row["kept"])]))
    first: dict[str, list[Answers]] = {}
    for name, answers in found.items():
        earliest = sorted(answers, key=itemgetter(0))[:FIRST]
        classed = [_classed(kept) for _, kept in earliest]
        numbers, examples = Counter(answer for answer, _ in classed), dict(classed)
        first[name] = [Answers(each, n, examples[each]) for each, n in numbers.items()]
    return first


def _classed(kept: Kept) -> tuple[AnswerClass, str]:
    """Return the class of a kept answer, and the begin of its body."""
    body, problem = kept.body, ""
    if body is not None and kept.encoding:
        body, problem = unpacked(body, kept.encoding)
    is_packed = bool(problem or (body is None and kept.encoding))
    answer = class_of(kept.status, kept.content_type, body, kept.size, is_packed)
    if body is None or is_packed:
        return answer, ""
    # A credential that was cut off could not be found later.
    return answer, example_of(shown_answer(body[:READ].decode(errors="replace")))


def _counted(rows: np.ndarray) -> Iterator[tuple[tuple[int, int, int, int], int]]:
    """Yield template, status, class of length and kept answer, and how many successes have them."""
    good = rows[(rows["error"] == 0) & (rows["sent_ns"] > 0)]
    about = np.round(np.log1p(good["bytes"]) / STEP).astype(np.int64)
    key = good["template"].astype(np.int64)
    for part, bits in ((good["status"], 10), (about, 10), (good["kept"], 32)):
        key = key << bits | part
    for number, count in zip(*np.unique(key, return_counts=True), strict=True):
        parts = int(number)
        kept, about_bytes, status = parts & 0xFFFFFFFF, parts >> 32 & 0x3FF, parts >> 42 & 0x3FF
        yield (parts >> 52, status, about_bytes, kept), int(count)
