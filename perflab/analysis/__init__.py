"""Analysis: pure functions from recordings to numbers, verdicts and sentences."""

from perflab.analysis.comparison import Effect, benjamini_hochberg, compare, interaction
from perflab.analysis.correlation import Correlation, correlate, windows
from perflab.analysis.covariate import Adjustment, adjustment
from perflab.analysis.decision import Decision, Kind, blocks_needed, decide, power, smallest_effect
from perflab.analysis.decomposition import decompose, largest_phase, sum_check
from perflab.analysis.evaluation import Finding, evaluate, findings_table, sentence
from perflab.analysis.quantiles import Estimate, across_trials, quantile, smallest_n
from perflab.analysis.stream_relations import relations
from perflab.analysis.summary import summary_table
from perflab.analysis.validity import validity_table
from perflab.analysis.verdict import Outcome, Verdict, judge

__all__ = [
    "Adjustment",
    "Correlation",
    "Decision",
    "Effect",
    "Estimate",
    "Finding",
    "Kind",
    "Outcome",
    "Verdict",
    "across_trials",
    "adjustment",
    "benjamini_hochberg",
    "blocks_needed",
    "compare",
    "correlate",
    "decide",
    "decompose",
    "evaluate",
    "findings_table",
    "interaction",
    "judge",
    "largest_phase",
    "power",
    "quantile",
    "relations",
    "sentence",
    "smallest_effect",
    "smallest_n",
    "sum_check",
    "summary_table",
    "validity_table",
    "windows",
]
