"""Thresholds that a change may not cross: failed, passed, or not decided.

A threshold is failed if the whole 95% interval of the effect lies beyond its limit, and passed if
no part of the interval does; otherwise it is not decided. A gate that looked at the estimate alone
would fail half of the changes whose true effect is exactly the limit. Where one side has more
refused trials, a threshold is passed only if it is with their values, too.

Each threshold alone is crossed by chance in up to 2.5% of comparisons. Over all thresholds of a
gate, for all pairs of variants, Holm's method keeps the chance that any is crossed below 5%. A gate
asks for one side alone, so its p-values are one-sided. Too few blocks could cross no threshold,
whatever they show (:mod:`perflab.analysis.gates.gate_blocks`): what they do not decide is not
judged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perflab.analysis.evaluation import Finding
from perflab.analysis.gates.gate_blocks import can_fail
from perflab.analysis.results import Gate
from perflab.errors import ParameterError
from perflab.recordings import Contrast
from perflab.recordings.responses import BY_REQUEST, FAILURES, of_request, split_request
from perflab.statistics.comparison import USUAL_P, Effect
from perflab.statistics.families import holm
from perflab.statistics.mean_intervals import SMALLEST_N

# The name of a threshold, and its response.
NAMES = {
    "throughput": "throughput_rps",
    "mean": "mean_ms",
    "p50": "p50_ms",
    "p99": "p99_ms",
    "cpu": "service_cpu_us_per_request",
    "memory": "service_memory_bytes",
    "failures": FAILURES,
}
MORE_IS_BETTER = ("throughput",)
WRITTEN = re.compile(r"\s*(?:(.+):)?([a-z0-9]+)\s*([<>])\s*([0-9]*\.?[0-9]+)\s*")


@dataclass(frozen=True)
class Threshold:
    """A limit of a ratio to the baseline, or of a difference: ``p99>1.05``, ``create:p99>1.1``."""

    text: str
    response: str
    above: bool
    limit: float

    def judged(self, finding: Finding) -> Gate:
        """Return whether the whole interval of an effect lies beyond the limit."""
        if finding.effect is None:
            return Gate.NOT_JUDGED
        result = self.of_effect(finding.effect)
        with_refused = finding.refused.effect if finding.refused else None
        if result is Gate.PASSED and with_refused is not None:
            return result if self.of_effect(with_refused) is Gate.PASSED else Gate.NOT_DECIDED
        return result

    def of_effect(self, effect: Effect) -> Gate:
        """Return the result of one effect, whatever was refused."""
        if effect.n < SMALLEST_N or math.isnan(effect.low):
            return Gate.NOT_DECIDED
        # The better end of the interval, and the worse one.
        better, worse = (effect.low, effect.high) if self.above else (effect.high, effect.low)
        sign = 1 if self.above else -1
        if sign * better > sign * self.limit:
            return Gate.FAILED
        return Gate.NOT_DECIDED if sign * worse > sign * self.limit else Gate.PASSED

    def p_value(self, finding: Finding) -> float:
        """Return the one-sided p-value of an effect that is at most the limit, or at least.

        1 where the interval does not lie beyond the limit: such a threshold is not crossed.
        """
        if self.judged(finding) is not Gate.FAILED:
            return 1.0
        assert finding.effect is not None
        assert finding.effect.blocks is not None
        limit = self.limit if split_request(self.response)[0] == FAILURES else math.log(self.limit)
        return finding.effect.blocks.p_value(limit) / 2


@dataclass(frozen=True)
class Judged:
    """The result of one threshold in one comparison."""

    threshold: Threshold
    contrast: Contrast
    result: Gate


def thresholds_of(texts: Iterable[str], subject: str = "--fail-on") -> list[Threshold]:
    """Return the thresholds that texts such as ``p99>1.05`` describe.

    Raises
    ------
    ParameterError
        Texts describe no threshold that makes sense; the error names all of them.
    """
    thresholds, problems = [], []
    for text in texts:
        try:
            thresholds.append(_threshold(text))
        except ValueError as error:
            problems.append(f"'{text}' {error}")
    if problems:
        raise ParameterError(subject, problems)
    return thresholds


def _threshold(text: str) -> Threshold:
    match = WRITTEN.fullmatch(text)
    if match is None or match[2] not in NAMES:
        raise ValueError(f"is not like p99>1.05 or create:p99>1.05; names: {', '.join(NAMES)}")
    request, name, sign, limit = match[1], match[2], match[3], float(match[4])
    if request and NAMES[name] not in BY_REQUEST:
        known = ", ".join(each for each, of in NAMES.items() if of in BY_REQUEST)
        raise ValueError(f"is not known of one request alone; of one there are {known}")
    worse = "<" if name in MORE_IS_BETTER else ">"
    if sign != worse:
        raise ValueError(f"would fail an improvement; write '{name}{worse}{match[4]}'")
    if NAMES[name] == FAILURES:
        if limit >= 1:
            raise ValueError("is a share of all requests: 0.01 is one more failure in a hundred")
    elif worse == "<" and limit <= 0:
        raise ValueError("never fails, as a ratio is above 0: 0.95 fails 5% fewer, 1 is equal")
    elif (limit < 1) == (worse == ">") and limit != 1:
        raise ValueError("would fail a run without a change: p99>1.05 fails 5% slower, 1 is equal")
    response = of_request(NAMES[name], request) if request else NAMES[name]
    return Threshold(text.strip(), response, worse == ">", limit)


def judged(thresholds: Sequence[Threshold], findings: Iterable[Finding]) -> list[Judged]:
    """Return the result of every threshold in every comparison of its response."""
    pairs = [
        (threshold, finding)
        for finding in findings
        for threshold in thresholds
        if threshold.response == finding.contrast.response
    ]
    adjusted = holm([threshold.p_value(finding) for threshold, finding in pairs])
    return [
        Judged(threshold, finding.contrast, _result(threshold, finding, p, len(pairs)))
        for (threshold, finding), p in zip(pairs, adjusted, strict=True)
    ]


def _result(threshold: Threshold, finding: Finding, adjusted: float, among: int) -> Gate:
    """Return the result of one ``among`` so many, whose p-value is adjusted over all of them."""
    result = threshold.judged(finding)
    if result is Gate.FAILED and adjusted > USUAL_P:
        result = Gate.NOT_DECIDED
    effect = finding.effect
    if result is Gate.NOT_DECIDED and effect is not None:
        return result if can_fail(effect.n, among, effect.looks) else Gate.NOT_JUDGED
    return result
