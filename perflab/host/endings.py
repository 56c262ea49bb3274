"""How a process ended, in words."""

from __future__ import annotations

import signal


def how_it_ended(code: int) -> str:
    """Say how a process ended; a negative code is the signal that ended it (as in subprocess)."""
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
