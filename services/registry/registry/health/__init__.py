"""The health side: the service downloads from itself, and a page that starts it and shows it.

The load runs in the service's own process, on the event loop that also serves the downloads. That
is how the published numbers were made, and what makes them a specimen: a client that shares the
loop with its service measures both. It needs nothing of the service but its port.
"""

from registry.health.endpoints import Health
from registry.health.secret import Secret

__all__ = ["Health", "Secret"]
