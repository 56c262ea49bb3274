"""The claims about shares of time, by rules of their own."""

from __future__ import annotations

from perflab.analysis.rules import Rule
from perflab.systems.inference.time_shares import CLAIMS, has_all_commits, judged_claims

RULES = (Rule(tuple(CLAIMS), has_all_commits, judged_claims),)
