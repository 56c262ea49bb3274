"""The table of a duel: a row for each response of each pair."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from perflab.analysis.effect_words import effect_text
from perflab.analysis.evaluation import Finding
from perflab.analysis.typical_values import typical_values
from perflab.recordings import Run
from perflab.recordings.responses import split_request
from perflab.reports.duel_answer import CPU, FAILURES, MEMORY, PERCENT
from perflab.reports.duel_pairs import Pair, name_of, treatments_of
from perflab.statistics.in_words import MISSING, at_least, missing, number

# Units of the table, as factors of those of the recording.
UNITS = {
    "throughput_rps": ("/s", 1.0), CPU: ("us/request", 1.0), MEMORY: ("MB", 1e-6),
    FAILURES: ("%", PERCENT),
}  # fmt: skip


def result_table(run: Run, pairs: Sequence[Pair]) -> pd.DataFrame:
    """Return a row of text for each response of each pair.

    Values of variants are typical ones over the ``n`` blocks compared.
    """
    several = len(pairs) > 1
    first = pairs[0]
    # No dictionary of columns: a variant may have the name of one.
    sides = (first.old, "variant's" if several else first.new)
    columns = [*["variant"] * several, "response", *sides, "ratio [95%]", "n", "verdict"]
    rows = []
    for pair in pairs:
        for response, finding in pair.findings.items():
            trials = run.trials_of(response)
            unit, factor = UNITS.get(split_request(response)[0], ("ms", 1.0))
            new, old = (
                _value(trials[trials["treatment"] == treatment], finding, factor)
                for treatment in treatments_of(run, finding)
            )
            n = finding.effect.n_text if finding.effect else "0"
            verdict = "; ".join([str(finding.verdict), *_gate_of(pair, response)])
            text = f"{name_of(response)}, {unit}"
            rows.append([*[pair.new] * several, text, old, new, effect_text(finding), n, verdict])
    return pd.DataFrame(rows, columns=columns)


def _value(trials: pd.DataFrame, finding: Finding, factor: float) -> str:
    """Return the typical value of a variant in the compared blocks, or its lower bound."""
    response = finding.contrast.response
    if finding.effect is None:
        return MISSING
    typical = typical_values(trials[trials["block"].isin(finding.blocks)], [response])
    value, low = typical[response], typical[f"{response}_low"]
    if missing(value) and not missing(low):
        return at_least(low * factor)
    return number(value * factor)


def _gate_of(pair: Pair, response: str) -> list[str]:
    """Return the results of a response's thresholds, if it has any: ``gate: FAILED >1.05``."""
    texts = [
        f"{result} {threshold.text.removeprefix(name_of(response))}"
        for threshold, result in pair.gate.items()
        if threshold.response == response
    ]
    return [f"gate: {', '.join(texts)}"] if texts else []
