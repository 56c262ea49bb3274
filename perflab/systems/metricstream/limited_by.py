"""Whether the load generator or the server was the limit: claim 4, by a rule fixed beforehand.

The same server gets the same target rate from the study's load tests (service ``naive_client``)
and, in the same blocks, from the lab's client. Of a block in which both trials are valid is said

==============  ====================================================================================
target reached  the naive client reached its target: nothing limited it
client-limited  it did not, the lab's client did, and the server had room under the naive load
server-limited  neither did, and the server had no room under the lab's load
undecided       anything else
==============  ====================================================================================

*Reached* is 95% of the target: for the naive client by its own count, for the lab's by its answers
a second and by the share of planned requests that were answered in time. A server *has room* where
it took less than nine tenths of a core (or of ``server_cpus``, where that is less than one),
dropped no connection for want of room, and no more than a tenth of the clients waited at once to be
accepted. Where the naive client may only use cores of the server's, both together must leave a
tenth of a core: else the two are in each other's way.

A pair of load tests is called what three quarters of its blocks are called, and three at least.
**Claim 4** (the generator was the bottleneck) is judged for the study's main load test by the ratio
of the two rates in blocks where the server had room, over blocks as any effect: shown where its 95%
interval lies below 95%, opposite where it lies above, and opposite, too, where the pair is
server-limited.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from perflab.analysis.evaluation import Finding, with_trials
from perflab.analysis.findings import JointClaim, joined
from perflab.analysis.noise import noise_flags
from perflab.analysis.verdict import (
    SMALLEST_N,
    Limit,
    Outcome,
    Verdict,
    Way,
    judge,
)
from perflab.recordings import Contrast, Response, Run
from perflab.statistics.comparison import effect_of
from perflab.statistics.in_words import counted
from perflab.systems.metricstream.rungs import LOAD_TESTS, OF_THE_LAB

REACHED, FULL_CORE, QUEUED, MOST = 0.95, 0.9, 0.1, 0.75
NOBODY, CLIENT, SERVER, UNDECIDED = (
    "target reached", "client-limited", "server-limited", "undecided",
)  # fmt: skip
LIMIT = Limit(math.log(REACHED), f"{REACHED:.0%} of the lab's rate")
RATES = Response(
    name="told_achieved_rps", title="rate as told over the rate of the lab's client", better="more"
)


# The load tests of the study, each beside the lab's client, and what was published of one of them.
PAIRS = tuple(OF_THE_LAB)
CLAIMS = {"naive_closes_new": "claim 4"}


def pairs_of(run: Run) -> tuple[str, ...]:
    """Return the load tests of a run beside which the lab's client had the same server."""
    have = {item.levels.get("rung") for item in run.record.treatments}
    return tuple(naive for naive, own in OF_THE_LAB.items() if {naive, own} <= have)


def blocks_of(run: Run, pair: str) -> pd.DataFrame:
    """Return a row per block, its number the index: both rates, and who was the limit.

    ``naive_rps``, ``lab_rps``, ``has_room`` (under the naive load), and ``word``: empty where a
    side has no valid trial, and all else is NaN or False.
    """
    naive, own = (_by_block(run, rung) for rung in (pair, OF_THE_LAB[pair]))
    target = float(run.record.parameters["target_rate"])
    rates = {"naive_rps": naive["told_achieved_rps"], "lab_rps": own["throughput_rps"]}
    reached = naive["told_success_rate"] >= REACHED
    lab_reached = (own["success_share"] >= REACHED) & (own["throughput_rps"] >= REACHED * target)
    has_room = _has_room(run, naive)
    words = np.select(
        [
            _not_known(naive, own),
            reached,
            lab_reached & has_room,
            ~lab_reached & ~_has_room(run, own),
        ],
        ["", NOBODY, CLIENT, SERVER],
        UNDECIDED,
    )
    return pd.DataFrame({**rates, "has_room": has_room, "word": words})


def _not_known(naive: pd.DataFrame, own: pd.DataFrame) -> pd.Series[bool]:
    """Say where a side is missing, or does not tell what the rule goes by."""
    found: pd.Series[bool] = (
        naive[["told_success_rate", "cpu_share_metricstream"]].isna().any(axis=1)
        | own[["success_share", "throughput_rps", "cpu_share_metricstream"]].isna().any(axis=1)
    )  # fmt: skip
    return found


def _by_block(run: Run, rung: str) -> pd.DataFrame:
    names = run.record.selected({"rung": rung})
    trials = run.valid_trials()
    own = trials[trials["treatment"].isin(names)].set_index("block")
    wanted = [
        "told_achieved_rps", "told_success_rate", "throughput_rps", "success_share",
        "cpu_share_metricstream", "cpu_share_naive_client", "accept_queue_max_metricstream",
        "accept_drops_metricstream",
    ]  # fmt: skip
    return own.reindex(index=pd.RangeIndex(run.record.blocks), columns=wanted).astype(float)


def _has_room(run: Run, trials: pd.DataFrame) -> pd.Series[bool]:
    """Say in which blocks the server had room; a queue that the kernel does not tell is none."""
    own = used = trials["cpu_share_metricstream"]
    if _share_cores(run):
        used = own + trials["cpu_share_naive_client"].fillna(0.0)
    full = FULL_CORE * min(1.0, run.record.parameters.get("server_cpus") or 1.0)
    clients = float(run.record.parameters["clients"])
    queued = trials["accept_queue_max_metricstream"].fillna(math.inf) > QUEUED * clients
    dropped = trials["accept_drops_metricstream"].fillna(math.inf) > 0
    return (own < full) & (used < FULL_CORE) & ~queued & ~dropped


def _share_cores(run: Run) -> bool:
    """Say whether the naive client, placed as a link, has no core but the server's."""
    placed = run.record.placement
    return set(placed.get("link", ())) <= set(placed.get("services", ()))


def word_of(blocks: pd.DataFrame) -> str:
    """Return what a pair is called, by the words of its blocks."""
    known = blocks.loc[blocks["word"] != "", "word"]
    if len(known) < SMALLEST_N:
        return UNDECIDED
    (first,) = known.mode().head(1)
    enough = (known == first).mean() >= MOST and (known == first).sum() >= SMALLEST_N
    return str(first) if enough else UNDECIDED


def finding_of(run: Run, pair: str) -> Finding:
    """Judge by the ratio of rates whether the naive client fell short where the server had room."""
    blocks = blocks_of(run, pair)
    usable = blocks["word"].isin((NOBODY, CLIENT)) & blocks["has_room"] & (blocks["naive_rps"] > 0)
    ratios = (blocks["naive_rps"] / blocks["lab_rps"]).where(usable)
    by_block = ratios.map(math.log, na_action="ignore")
    known, contrast = by_block.dropna(), _contrast(pair)
    effect = None if known.empty else effect_of(by_block)
    verdict = judge(effect, contrast, limit=LIMIT)
    told = in_words(blocks)
    if word_of(blocks) == SERVER:
        verdict = Verdict(Outcome.OPPOSITE, told, Way.OPPOSITE)
    else:
        verdict = Verdict(verdict.outcome, f"{verdict.reason}; {told}", verdict.direction)
    found = Finding(
        contrast,
        RATES,
        effect,
        verdict,
        blocks=tuple(int(block) for block in known.index),
        left_out=len(by_block) - len(known),
        noise=noise_flags(run),
        limit=f"smaller than {REACHED:g}",
    )
    sides = (contrast.numerator, contrast.denominator)
    return with_trials(found, run, [name for side in sides for name in run.record.selected(side)])


def in_words(blocks: pd.DataFrame) -> str:
    """Return what a pair is called, and in how many blocks it is called so, or what they are."""
    known = blocks.loc[blocks["word"] != "", "word"]
    counts = ", ".join(f"{n} {word}" for word, n in known.value_counts().items())
    return f"{word_of(blocks)} ({counted(len(known), 'block')}{': ' if counts else ''}{counts})"


def _contrast(pair: str) -> Contrast:
    words = LOAD_TESTS[pair]
    return Contrast(
        name=CLAIMS.get(pair, f"claim 4, {words}"),
        claim=f"the way the load generator was built was the bottleneck ({words})",
        response=RATES.name,
        numerator={"rung": pair},
        denominator={"rung": OF_THE_LAB[pair]},
        published_direction="smaller",
        source="metricstream study, claim 4",
    )


def judged_claims(run: Run) -> Mapping[str, JointClaim]:
    """Return the published claims that a run's pairs answer, by name."""
    pairs = [pair for pair in pairs_of(run) if pair in CLAIMS]
    return {CLAIMS[pair]: joined([finding_of(run, pair)]) for pair in pairs}


def has_pairs(run: Run) -> bool:
    """Return whether a run sets the naive client beside the lab's own."""
    return bool(pairs_of(run))
