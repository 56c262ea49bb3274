"""What is drawn of its runs."""

from __future__ import annotations

from perflab.figures import OF_REQUESTS

VIEWS = OF_REQUESTS
