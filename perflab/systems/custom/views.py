"""What is drawn of its runs."""

from __future__ import annotations

from perflab.figures import CAUSES, OF_REQUESTS

VIEWS = (*OF_REQUESTS, CAUSES)
