"""Any set of runs as one table, and one effect over all runs of an experiment."""

from perflab.across.choosing import Which
from perflab.across.history import trend
from perflab.across.tables import effects, trials_of

__all__ = ["Which", "effects", "trend", "trials_of"]
