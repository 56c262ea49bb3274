"""The views of runs in which the lab checks itself and its clients."""

from __future__ import annotations

from perflab.figures import OF_REQUESTS
from perflab.systems.lab.figures import CLIENT_COST, KNOWN_EFFECTS

VIEWS = (*OF_REQUESTS, CLIENT_COST, KNOWN_EFFECTS)
