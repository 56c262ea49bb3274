"""The pairs of a duel: a variant against the baseline, with its findings and thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perflab.analysis.evaluation import Finding
from perflab.analysis.gates.not_compared import is_compared
from perflab.analysis.gates.thresholds import NAMES, Judged, Threshold
from perflab.analysis.results import Gate
from perflab.recordings import Run
from perflab.recordings.responses import split_request

NAME_OF = {response: name for name, response in NAMES.items()}


def name_of(response: str) -> str:
    """Return what a row is called: ``p99``, or ``create:p99`` of one of several requests."""
    base, request = split_request(response)
    return f"{request}:{NAME_OF[base]}" if request else NAME_OF[base]


@dataclass(frozen=True)
class Pair:
    """A variant against the baseline: findings by response, and the results of thresholds."""

    new: str
    old: str
    findings: Mapping[str, Finding]
    gate: Mapping[Threshold, Gate]


def pairs_of(
    findings: Iterable[Finding], thresholds: Sequence[Threshold], results: Iterable[Judged]
) -> list[Pair]:
    """Return the pairs of a duel.

    A threshold on what was not measured is not judged, nor is one that a pair held of which nothing
    was compared.
    """
    by_sides: dict[tuple[str, str], dict[str, Finding]] = {}
    for finding in findings:
        contrast = finding.contrast
        new, old = ("/".join(side.values()) for side in (contrast.numerator, contrast.denominator))
        by_sides.setdefault((new, old), {})[contrast.response] = finding
    judged = {(item.contrast.name, item.threshold): item.result for item in results}

    def result_of(threshold: Threshold, of_pair: Mapping[str, Finding]) -> Gate:
        finding = of_pair.get(threshold.response)
        result = judged[finding.contrast.name, threshold] if finding else Gate.NOT_JUDGED
        is_judged = result is Gate.FAILED or is_compared(of_pair)
        return result if is_judged else Gate.NOT_JUDGED

    return [
        Pair(*sides, of_pair, {item: result_of(item, of_pair) for item in thresholds})
        for sides, of_pair in by_sides.items()
    ]


def treatments_of(run: Run, finding: Finding) -> list[str]:
    """Return the names of the variant's treatment and of the baseline's."""
    sides = (finding.contrast.numerator, finding.contrast.denominator)
    return [name for side in sides for name in run.record.selected(side)]
