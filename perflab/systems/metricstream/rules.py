"""Whether the load generator or the server was the limit: claim 4, by a rule fixed beforehand.

The same server gets the same target rate from the study's load tests (service ``naive_client``)
and, in the same blocks, from the lab's client. A block in which both trials are valid gets a word:

==============  ====================================================================================
target reached  the naive client reached its target: nothing limited it
client-limited  it did not, the lab's client did, and the server had room under the naive load
server-limited  neither did, and the server had no room under the lab's load
not decided     anything else
==============  ====================================================================================

*Reached* is 95% of the target: for the naive client by its own count, for the lab's by its answers
a second and by the share of planned requests that were answered in time. A server *has room* if it
took less than nine tenths of a core (or of ``server_cpus``, if that is less than one), dropped no
connection for want of room, and no more than a tenth of the clients waited at once to be accepted.
If the naive client shares the server's cores, both together must leave a tenth of a core, because
they would else disturb each other.

A pair of load tests gets the word of three quarters of its blocks, and of three at least.
**Claim 4** (the generator was the bottleneck) is judged for the study's main load test by the ratio
of the two rates over blocks in which the server had room, as any effect: shown if its 95% interval
lies below 95%, the other way if it lies above, and, too, if the pair is server-limited.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from perflab.analysis.evaluation import Finding, with_trials
from perflab.analysis.noise import noise_flags
from perflab.analysis.results import AgainstStudy, Verdict
from perflab.analysis.rules import Rule
from perflab.analysis.starts import effect_of_run
from perflab.analysis.verdict import against_limit, judge
from perflab.recordings import Contrast, Response, Run, stated
from perflab.statistics.comparison import Effect
from perflab.statistics.in_words import counted
from perflab.statistics.mean_intervals import SMALLEST_N
from perflab.systems.metricstream.rungs import LOAD_TESTS, OF_THE_LAB, STUDY

REACHED, FULL_CORE, QUEUED, MOST = 0.95, 0.9, 0.1, 0.75
NOBODY, CLIENT, SERVER, NOT_DECIDED = (
    "target reached", "client-limited", "server-limited", "not decided",
)  # fmt: skip
SERVER_CPU = "cpu_share_metricstream"
RATES = Response(
    name="told_achieved_rps", title="rate as told over the rate of the lab's client", better="more"
)


CLAIM = "claim 4"
# The main load test of the study, which the claim is about.
MAIN = "naive_closes_new"


def pairs_of(run: Run) -> tuple[str, ...]:
    """Return the load tests of a run whose match with the lab's client is in the run, too."""
    rungs = {treatment.levels.get("rung") for treatment in run.record.treatments}
    return tuple(naive for naive, of_lab in OF_THE_LAB.items() if {naive, of_lab} <= rungs)


def blocks_of(run: Run, pair: str) -> pd.DataFrame:
    """Return a row per block, indexed by its number, with both rates and the block's word.

    Columns: ``naive_rps``, ``lab_rps``, ``has_room`` (under the naive load) and ``word``. If a side
    has no valid trial, the word is empty and all else is NaN or False.
    """
    naive, lab = (_by_block(run, rung) for rung in (pair, OF_THE_LAB[pair]))
    target = float(run.record.parameters["target_rate"])
    rates = {"naive_rps": naive["told_achieved_rps"], "lab_rps": lab["throughput_rps"]}
    naive_reached = naive["told_success_rate"] >= REACHED
    lab_reached = (lab["success_share"] >= REACHED) & (lab["throughput_rps"] >= REACHED * target)
    has_room = _has_room(run, naive)
    is_unknown = naive[["told_success_rate", SERVER_CPU]].isna().any(axis=1)
    is_unknown |= lab[["success_share", "throughput_rps", SERVER_CPU]].isna().any(axis=1)
    is_full = ~_has_room(run, lab)
    cases = [is_unknown, naive_reached, lab_reached & has_room, ~lab_reached & is_full]
    words = np.select(cases, ["", NOBODY, CLIENT, SERVER], NOT_DECIDED)
    return pd.DataFrame({**rates, "has_room": has_room, "word": words})


def _by_block(run: Run, rung: str) -> pd.DataFrame:
    names = run.record.selected({"rung": rung})
    trials = run.valid_trials()
    rows = trials[trials["treatment"].isin(names)].set_index("block")
    columns = [
        "told_achieved_rps", "told_success_rate", "throughput_rps", "success_share",
        SERVER_CPU, "cpu_share_naive_client", "accept_queue_max_metricstream",
        "accept_drops_metricstream",
    ]  # fmt: skip
    return rows.reindex(index=pd.RangeIndex(run.judged_blocks), columns=columns).astype(float)


def _has_room(run: Run, trials: pd.DataFrame) -> pd.Series[bool]:
    """Return in which blocks the server had room; it had none if the queue is not known."""
    server_cores = used_cores = trials[SERVER_CPU]
    placed = run.record.placement
    # The naive client, placed as a link, may have no core but the server's.
    if set(placed.get("link", ())) <= set(placed.get("services", ())):
        used_cores = server_cores + trials["cpu_share_naive_client"].fillna(0.0)
    full_cores = FULL_CORE * min(1.0, run.record.parameters.get("server_cpus") or 1.0)
    clients = float(run.record.parameters["clients"])
    queued = trials["accept_queue_max_metricstream"].fillna(math.inf) > QUEUED * clients
    dropped = trials["accept_drops_metricstream"].fillna(math.inf) > 0
    return (server_cores < full_cores) & (used_cores < FULL_CORE) & ~queued & ~dropped


def word_of(blocks: pd.DataFrame) -> str:
    """Return the word of a pair, from the words of its blocks."""
    known = blocks.loc[blocks["word"] != "", "word"]
    if len(known) < SMALLEST_N:
        return NOT_DECIDED
    (commonest,) = known.mode().head(1)
    is_common = (known == commonest).mean() >= MOST and (known == commonest).sum() >= SMALLEST_N
    return str(commonest) if is_common else NOT_DECIDED


def log_ratios(blocks: pd.DataFrame) -> pd.Series[float]:
    """Return the log of the naive client's rate over the lab's by block; NaN without room."""
    usable = blocks["word"].isin((NOBODY, CLIENT)) & blocks["has_room"] & (blocks["naive_rps"] > 0)
    ratios = (blocks["naive_rps"] / blocks["lab_rps"]).where(usable)
    return ratios.map(math.log, na_action="ignore")


def effect_in(run: Run, blocks: pd.DataFrame) -> Effect | None:
    """Return the ratio of the two rates, or None if no block has one."""
    by_block = log_ratios(blocks)
    return effect_of_run(run, by_block) if by_block.notna().any() else None


def in_words(blocks: pd.DataFrame) -> str:
    """Return the word of a pair, and the words of its blocks with their counts."""
    known = blocks.loc[blocks["word"] != "", "word"]
    counts = ", ".join(f"{n} {word}" for word, n in known.value_counts().items())
    return f"{word_of(blocks)} ({counted(len(known), 'block')}{': ' if counts else ''}{counts})"


def finding_of(run: Run) -> Finding:
    """Judge by the ratio of rates whether the naive client fell short while the server had room."""
    blocks = blocks_of(run, MAIN)
    known = log_ratios(blocks).dropna()
    contrast = Contrast(
        name=CLAIM,
        claim=f"{stated(STUDY, CLAIM)} ({LOAD_TESTS[MAIN]})",
        response=RATES.name,
        numerator={"rung": MAIN},
        denominator={"rung": OF_THE_LAB[MAIN]},
        published_direction="smaller",
        limit=REACHED,
        source=f"{STUDY} study, {CLAIM}",
    )
    effect, words = effect_in(run, blocks), in_words(blocks)
    effect = against_limit(effect, contrast) if effect else None
    if word_of(blocks) == SERVER:
        verdict = Verdict(AgainstStudy.OTHER_WAY, words)
    elif effect is None:
        verdict = Verdict(AgainstStudy.NOT_DECIDED, words)
    else:
        verdict = judge(effect, contrast)
        verdict = replace(verdict, reason=f"{verdict.reason}; {words}")
    finding = Finding(
        contrast,
        RATES,
        effect,
        verdict,
        blocks=tuple(int(block) for block in known.index),
        left_out=len(blocks) - len(known),
        noise=noise_flags(run),
    )
    sides = (contrast.numerator, contrast.denominator)
    return with_trials(finding, run, [name for side in sides for name in run.record.selected(side)])


def judged_claims(run: Run) -> list[Finding]:
    """Return the finding on claim 4 if a run has the study's main load test and its match."""
    return [finding_of(run)] if MAIN in pairs_of(run) else []


def has_pairs(run: Run) -> bool:
    """Return whether a run has a load test of the study with its match."""
    return bool(pairs_of(run))


RULES = (Rule((CLAIM,), has_pairs, judged_claims),)
