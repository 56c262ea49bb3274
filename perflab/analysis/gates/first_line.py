"""What the first line of a duel may name: two families of questions, over all pairs of variants.

The first line names whatever differs, so all its questions are counted together: of duels in which
nothing differs, at most 5% may name a difference. Each family has half of that, shared out by
Holm's method. The first family is what every answer speaks of: mean response time and CPU. The
second is what an answer names only where it differs, with the rows of single requests. The
throughput of a closed loop is the mean again: it is no question of its own, and its row is as
certain as that of the mean.

``benchmarks/first_line.py`` has simulations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from perflab.recordings import Contrast
from perflab.recordings.responses import BY_REQUEST, FAILURES, split_request
from perflab.statistics.comparison import USUAL_P
from perflab.statistics.families import Corrected, blocks_for_one, corrected, holm

VARIANT = "variant"
MEAN, THROUGHPUT = "mean_ms", "throughput_rps"
FAMILIES = {
    "every answer": (MEAN, "service_cpu_us_per_request"),
    "where it differs": ("p50_ms", "p99_ms", "service_memory_bytes", FAILURES),
}
FAMILY_OF = {response: name for name, responses in FAMILIES.items() for response in responses}
OF_REQUESTS = "where it differs"
LEVEL = USUAL_P / len(FAMILIES)


def family_of(response: str) -> str:
    """Return the family that a response is in; empty if it is in none."""
    base, name = split_request(response)
    return OF_REQUESTS if name else FAMILY_OF.get(base, "")


def are_of_a_duel(contrasts: Sequence[Contrast]) -> bool:
    """Return whether contrasts compare variants of a service, without any published result."""
    return any(family_of(item.response) for item in contrasts) and all(
        list(item.numerator) == [VARIANT]
        and (family_of(item.response) or item.response == THROUGHPUT)
        and not item.source
        for item in contrasts
    )


def corrected_over_first_line(
    contrasts: Sequence[Contrast], p_values: Sequence[float]
) -> list[Corrected]:
    """Return the p-value of each contrast of a duel with its adjusted one (NaN: not tested).

    Adjusted ones are up to 0.05 where the first line may name the difference. ``claims`` counts the
    questions of both families.
    """
    tested = [
        p if family_of(contrast.response) else math.nan
        for contrast, p in zip(contrasts, p_values, strict=True)
    ]
    families = [family_of(contrast.response) for contrast in contrasts]
    among = corrected(tested, families, _at_half_the_level)
    questions = sum(map(math.isfinite, tested))
    of_means = {
        _sides(contrast): each.adjusted
        for contrast, each in zip(contrasts, among, strict=True)
        if contrast.response == MEAN and math.isfinite(each.adjusted)
    }
    return [
        replace(each, claims=questions)
        if contrast.response != THROUGHPUT or math.isnan(p)
        else Corrected(p, max(p, of_means.get(_sides(contrast), p)), questions)
        for contrast, each, p in zip(contrasts, among, p_values, strict=True)
    ]


def _at_half_the_level(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values that are up to 0.05 where Holm's are up to ``LEVEL``."""
    # NaN stays NaN: min(NaN, 1) is NaN, and min(1, NaN) is 1.
    return [min(len(FAMILIES) * p, 1.0) for p in holm(p_values)]


def _sides(contrast: Contrast) -> tuple[str, str]:
    return contrast.numerator[VARIANT], contrast.denominator[VARIANT]


def fewest_blocks(contrasts: Iterable[Contrast]) -> int:
    """Return the fewest blocks that can show any one difference that the first line may name."""
    tested = (item for item in contrasts if not (item.not_testable or item.set_by_load))
    counts = Counter(filter(None, (family_of(item.response) for item in tested)))
    return blocks_for_one(max(counts.values(), default=1), LEVEL)


def fewest_blocks_of_pairs(pairs: int, requests: int = 0) -> int:
    """Return the fewest blocks that can show any one difference of so many pairs of variants.

    ``requests`` is the number of named requests.
    """
    sizes = {name: len(responses) for name, responses in FAMILIES.items()}
    sizes[OF_REQUESTS] += requests * len(BY_REQUEST)
    return blocks_for_one(pairs * max(sizes.values()), LEVEL)
