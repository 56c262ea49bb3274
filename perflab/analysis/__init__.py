"""Analysis: pure functions from recordings to numbers, verdicts and sentences.

This package exports what notebooks use.
"""

from perflab.analysis.accounts.profiles import profile_check, watched
from perflab.analysis.noise import noise_report
from perflab.analysis.validity import validity_table

__all__ = ["noise_report", "profile_check", "validity_table", "watched"]
