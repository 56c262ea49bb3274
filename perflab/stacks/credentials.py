"""Credentials of the user's own that a service asks for: from the environment, in a file.

They are in no command line and in no container's configuration, which ``docker inspect`` shows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from perflab.stacks.spec import ServiceSpec


def credentials_of(spec: ServiceSpec, env: Mapping[str, str] = os.environ) -> str:
    """Return a JSON object of the variables that a service names and the user has set."""
    return json.dumps({name: env[name] for name in spec.credentials if env.get(name)})
