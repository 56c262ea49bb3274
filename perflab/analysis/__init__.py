"""Analysis: pure functions from recordings to numbers, verdicts and sentences."""

from perflab.analysis.comparison import Effect, benjamini_hochberg, compare, interaction
from perflab.analysis.correlation import Correlation, correlate, windows
from perflab.analysis.covariate import Adjustment, adjustment
from perflab.analysis.decision import Decision, Kind, blocks_needed, decide, power, smallest_effect
from perflab.analysis.decomposition import (
    change,
    change_sentence,
    decompose,
    largest_phase,
    sum_check,
)
from perflab.analysis.evaluation import Finding, evaluate, not_asked
from perflab.analysis.findings import evidence, findings_table, sentence
from perflab.analysis.knee import Knee, knee
from perflab.analysis.lag import Lag, lag
from perflab.analysis.noise import noise_flags, noise_report
from perflab.analysis.power_law import PowerLaw, power_law
from perflab.analysis.profile import (
    Profile,
    profile_change,
    profile_changes,
    profile_check,
    profile_of,
    profiled,
    top_functions,
)
from perflab.analysis.quantiles import Estimate, across_trials, quantile
from perflab.analysis.requests import RequestSummary, summarise
from perflab.analysis.scalability import Scalability, scalability
from perflab.analysis.steady import SteadyState, steady_state, steady_table
from perflab.analysis.summary import summary_table
from perflab.analysis.two_runs import RunComparison, compare_runs
from perflab.analysis.validity import steady_trials, validity_table
from perflab.analysis.verdict import Outcome, Verdict, judge
from perflab.analysis.watched import watched
from perflab.percentiles import smallest_n

__all__ = [
    "Adjustment",
    "Correlation",
    "Decision",
    "Effect",
    "Estimate",
    "Finding",
    "Kind",
    "Knee",
    "Lag",
    "Outcome",
    "PowerLaw",
    "Profile",
    "RequestSummary",
    "RunComparison",
    "Scalability",
    "SteadyState",
    "Verdict",
    "across_trials",
    "adjustment",
    "benjamini_hochberg",
    "blocks_needed",
    "change",
    "change_sentence",
    "compare",
    "compare_runs",
    "correlate",
    "decide",
    "decompose",
    "evaluate",
    "evidence",
    "findings_table",
    "interaction",
    "judge",
    "knee",
    "lag",
    "largest_phase",
    "noise_flags",
    "noise_report",
    "not_asked",
    "power",
    "power_law",
    "profile_change",
    "profile_changes",
    "profile_check",
    "profile_of",
    "profiled",
    "quantile",
    "scalability",
    "sentence",
    "smallest_effect",
    "smallest_n",
    "steady_state",
    "steady_table",
    "steady_trials",
    "sum_check",
    "summarise",
    "summary_table",
    "top_functions",
    "validity_table",
    "watched",
    "windows",
]
