"""Analysis: pure functions from recordings to numbers, verdicts and sentences."""

from perflab.analysis.comparison import Effect, benjamini_hochberg, compare, interaction
from perflab.analysis.correlation import Correlation, correlate, windows
from perflab.analysis.covariate import Adjustment, adjustment
from perflab.analysis.decision import Decision, Kind, blocks_needed, decide, power, smallest_effect
from perflab.analysis.decomposition import decompose, largest_phase, sum_check
from perflab.analysis.evaluation import Finding, evaluate, findings_table, sentence
from perflab.analysis.profile import (
    Profile,
    profile_change,
    profile_changes,
    profile_check,
    profile_of,
    profiled,
    top_functions,
)
from perflab.analysis.quantiles import Estimate, across_trials, quantile, smallest_n
from perflab.analysis.serialization import cost_table, implied_loops, loops_sentence
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
    "Profile",
    "Verdict",
    "across_trials",
    "adjustment",
    "benjamini_hochberg",
    "blocks_needed",
    "compare",
    "correlate",
    "cost_table",
    "decide",
    "decompose",
    "evaluate",
    "findings_table",
    "implied_loops",
    "interaction",
    "judge",
    "largest_phase",
    "loops_sentence",
    "power",
    "profile_change",
    "profile_changes",
    "profile_check",
    "profile_of",
    "profiled",
    "quantile",
    "relations",
    "sentence",
    "smallest_effect",
    "smallest_n",
    "sum_check",
    "summary_table",
    "top_functions",
    "validity_table",
    "windows",
]
