"""Whether a new experiment can have a name: it becomes that of a system, service and stack too."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from perflab import systems
from perflab.paths import notebook_file
from perflab.stacks.spec import service_names

ALLOWED = re.compile(r"[a-z][a-z0-9_]{0,39}")


def problems_with(name: str) -> list[str]:
    """Return in sentences why a new experiment cannot have this name."""
    if not ALLOWED.fullmatch(name) or keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return [
            f"'{name}' cannot be the name of a module: take up to 40 small letters, digits and _, "
            "a letter first"
        ]
    taken = list(dict.fromkeys(_taken(name)))
    return [f"'{name}' is taken by {' and '.join(taken)}; choose another name"] if taken else []


def _taken(name: str) -> Iterator[str]:
    if name in systems.names():
        yield "an experiment"
    if name in systems.systems():
        yield "a system"
    if name in service_names():
        yield "a service"
    if name in systems.ready_stacks():
        yield "a stack"
    if notebook_file(name).exists():
        yield "a notebook"
    # It is imported as perflab.systems.<name>, and would hide what is there.
    if hasattr(systems, name):
        yield "the package perflab.systems itself"
