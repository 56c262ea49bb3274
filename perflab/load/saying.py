"""How a load worker reports: a JSON object on a line."""

from __future__ import annotations

import json
import sys
from typing import Any


def say(words: dict[str, Any]) -> None:
    """Write one report."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()
