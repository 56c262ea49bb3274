"""Analysis: pure functions from recordings to numbers, verdicts and sentences.

Here are those that notebooks use; the rest is in rooms: ``methods`` (effects, intervals), on them
``curves`` (shapes), on both ``trials`` (what they hold), and on all ``treatments`` (compared).
"""

from perflab.analysis.treatments.noise import noise_report
from perflab.analysis.trials.decomposition import change, decompose
from perflab.analysis.trials.profiles import profile_changes, profile_check, top_functions
from perflab.analysis.trials.summary import summary_table
from perflab.analysis.trials.validity import steady_trials, validity_table
from perflab.analysis.trials.watched_functions import watched

__all__ = [
    "change",
    "decompose",
    "noise_report",
    "profile_changes",
    "profile_check",
    "steady_trials",
    "summary_table",
    "top_functions",
    "validity_table",
    "watched",
]
