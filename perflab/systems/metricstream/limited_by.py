"""Whether the load generator or the server was the limit: claim 4, by a rule fixed beforehand.

The same server gets the same target rate from the study's load tests (service ``naive_client``)
and, in the same blocks, from the lab's client. A block in which both trials are valid gets a word:

==============  ====================================================================================
target reached  the naive client reached its target: nothing limited it
client-limited  it did not, the lab's client did, and the server had room under the naive load
server-limited  neither did, and the server had no room under the lab's load
undecided       anything else
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
lies below 95%, opposite if it lies above, and opposite, too, if the pair is server-limited.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd

from perflab.analysis.evaluation import Finding, with_trials
from perflab.analysis.findings import JointClaim, joined
from perflab.analysis.noise import noise_flags
from perflab.analysis.starts import effect_of_run
from perflab.analysis.verdict import Limit, Outcome, Verdict, Way, judge
from perflab.figures.charts import Axis, Points, RowChart, Rules
from perflab.figures.origin import Page, trials_shown
from perflab.figures.theme import PALETTE, Look
from perflab.figures.view import Judging, View
from perflab.recordings import Contrast, Response, Run
from perflab.statistics.comparison import SMALLEST_N, Effect
from perflab.statistics.in_words import counted
from perflab.systems.metricstream.rungs import LOAD_TESTS, OF_THE_LAB

REACHED, FULL_CORE, QUEUED, MOST = 0.95, 0.9, 0.1, 0.75
NOBODY, CLIENT, SERVER, UNDECIDED = (
    "target reached", "client-limited", "server-limited", "undecided",
)  # fmt: skip
SERVER_CPU = "cpu_share_metricstream"
LIMIT = Limit(math.log(REACHED), f"{REACHED:.0%} of the lab's rate")
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
    words = np.select(cases, ["", NOBODY, CLIENT, SERVER], UNDECIDED)
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
        return UNDECIDED
    (commonest,) = known.mode().head(1)
    is_common = (known == commonest).mean() >= MOST and (known == commonest).sum() >= SMALLEST_N
    return str(commonest) if is_common else UNDECIDED


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
        claim=f"the way the load generator was built was the bottleneck ({LOAD_TESTS[MAIN]})",
        response=RATES.name,
        numerator={"rung": MAIN},
        denominator={"rung": OF_THE_LAB[MAIN]},
        published_direction="smaller",
        source="metricstream study, claim 4",
    )
    effect, words = effect_in(run, blocks), in_words(blocks)
    verdict = judge(effect, contrast, limit=LIMIT)
    if word_of(blocks) == SERVER:
        verdict = Verdict(Outcome.OPPOSITE, words, Way.OPPOSITE)
    else:
        verdict = Verdict(verdict.outcome, f"{verdict.reason}; {words}", verdict.direction)
    finding = Finding(
        contrast,
        RATES,
        effect,
        verdict,
        blocks=tuple(int(block) for block in known.index),
        left_out=len(blocks) - len(known),
        noise=noise_flags(run),
        limit=f"smaller than {REACHED:g}",
    )
    sides = (contrast.numerator, contrast.denominator)
    return with_trials(finding, run, [name for side in sides for name in run.record.selected(side)])


def judged_claims(run: Run) -> Mapping[str, JointClaim]:
    """Return claim 4 if a run has the study's main load test and its match."""
    return {CLAIM: joined([finding_of(run)])} if MAIN in pairs_of(run) else {}


TITLE = "client-limited or server-limited"
RATE, SUCCESS, CORES = "rate", "success", "cores"
NAIVE, OWN, MARK, SAID = "as told by the naive client", "the lab's client", "mark", "said"
LOOKS = {
    NAIVE: Look(PALETTE[1], "s", "naive client, as it counts itself"),
    OWN: Look(PALETTE[0], "o", "the lab's client"),
}
# Panel: its words, the columns of the naive client's and the lab's trials, the factor of its unit.
PANELS: Mapping[str, tuple[str, str, str, float]] = {
    RATE: ("answers per second", "told_achieved_rps", "throughput_rps", 1.0),
    SUCCESS: ("success, %", "told_success_rate", "success_share", 100.0),
    CORES: ("the server's CPU, cores", SERVER_CPU, SERVER_CPU, 1.0),
}
COLUMNS = ["panel", "what", "treatment", "state", "value", "words"]


def limits_table(run: Run) -> pd.DataFrame:
    """Return a row per panel and trial of each pair, with marks and a sentence on each pair.

    ``mark`` is the target rate, 100% and one core; ``said`` has a pair's word, the ratio of its
    rates with its 95% interval, and the verdict on claim 4.
    """
    trials = trials_shown(run)
    pairs = pairs_of(run)
    if trials.empty or not pairs:
        return pd.DataFrame(columns=COLUMNS)
    points = [
        _points(run, trials, rung, client, panel)
        for pair in pairs
        for rung, client in ((pair, NAIVE), (OF_THE_LAB[pair], OWN))
        for panel in PANELS
    ]
    if not any(len(part) for part in points):
        return pd.DataFrame(columns=COLUMNS)
    target = float(run.record.parameters["target_rate"])
    marks = [
        {"panel": panel, "what": MARK, "value": value}
        for panel, value in ((RATE, target), (SUCCESS, 100.0), (CORES, 1.0))
    ]
    sentences = [{"what": SAID, "words": _pair_sentence(run, pair)} for pair in pairs]
    parts = [*(part for part in points if len(part)), pd.DataFrame([*marks, *sentences])]
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)


def _points(run: Run, trials: pd.DataFrame, rung: str, client: str, panel: str) -> pd.DataFrame:
    _, naive_column, lab_column, factor = PANELS[panel]
    rows = trials[trials["treatment"].isin(run.record.selected({"rung": rung}))]
    column = naive_column if client == NAIVE else lab_column
    values = rows.get(column, pd.Series(math.nan, index=rows.index)).astype(float)
    return rows[["treatment", "state"]].assign(panel=panel, what=client, value=factor * values)


def _pair_sentence(run: Run, pair: str) -> str:
    blocks = blocks_of(run, pair)
    sentence = f"{LOAD_TESTS[pair]}: {in_words(blocks)}"
    if effect := effect_in(run, blocks):
        has_interval = math.isfinite(effect.low)
        interval = f" [{effect.low:.2f}, {effect.high:.2f}]" if has_interval else ""
        sentence += f", naive over lab's rate {effect.estimate:.2f}{interval}, n = {effect.n_text}"
    return f"{sentence}; {CLAIM}: {finding_of(run).verdict}" if pair == MAIN else sentence


def _labels(table: pd.DataFrame, page: Page) -> dict[Hashable, str]:
    """Return the treatments of the pairs, those of a pair side by side."""
    shown = table.loc[table["what"].isin(LOOKS), "treatment"].unique()
    return {name: page.looks[name].label for name in shown if name in page.looks}


def _words(table: pd.DataFrame, _: Page) -> str:
    sentences = table.loc[table["what"] == SAID, "words"].astype(str)
    text = ". ".join(f"{sentence[:1].upper()}{sentence[1:]}" for sentence in sentences)
    return (
        "Points: trials (hollow: refused). Dashed: the target rate, all of it, one core. A"
        f" generator that misses {REACHED:.0%} of its target on a server that has room, where the"
        " lab's client reaches it in the same block, is itself the limit. Success: of what was"
        f" planned; as told, achieved over target rate. {text}."
    )


CHART = RowChart(
    TITLE,
    _words,
    layers=(Rules((MARK,)), Points((*LOOKS,), looks=LOOKS, how={"s": 20})),
    panels={panel: Axis(words, below=0.0) for panel, (words, *_) in PANELS.items()},
    labels=_labels,
    row_in=0.4,
)
CLIENT_OR_SERVER = View(
    "client_or_server", TITLE, limits_table, CHART.draw, 
    suits=lambda run: bool(pairs_of(run)),
    judging=Judging((CLAIM,), judged_claims),
)  # fmt: skip
