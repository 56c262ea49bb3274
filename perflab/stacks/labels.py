"""Labels on everything the lab starts, so that clean-up finds exactly ours.

Containers, volumes and images carry them as Docker labels; plain processes carry them in their
environment, which the kernel keeps readable until the process ends. They are believed only of what
runs under one's own user id.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from perflab.paths import lock_path

PROJECT = "perflab"
KINDS = ("run", "up")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,99}")
FIELDS = ("stack", "service", "kind", "port", "scope")


class LabelProblem(ValueError):
    """Labels that the lab cannot have written."""


@dataclass(frozen=True)
class Labels:
    """Whose a service is.

    ``kind`` is ``run`` for a measurement's services (removed when the measurement is gone) and
    ``up`` for services that a user started to keep. ``scope`` is the path of the host lock: runs
    under different locks never clean up after each other.
    """

    stack: str
    service: str
    kind: str
    port: int = 0
    scope: str = field(default_factory=lambda: str(lock_path()))

    def as_docker(self) -> dict[str, str]:
        """Return the labels of a container or volume."""
        own = {_key(name, "docker"): str(getattr(self, name)) for name in FIELDS}
        return {**own, "perflab.project": PROJECT, "perflab.uid": str(os.getuid())}

    def as_environment(self) -> dict[str, str]:
        """Return the same labels as environment variables of a process."""
        own = {_key(name, "environment"): str(getattr(self, name)) for name in FIELDS}
        return {**own, "PERFLAB_PROJECT": PROJECT}


def _key(name: str, where: str) -> str:
    return f"perflab.{name}" if where == "docker" else f"PERFLAB_{name.upper()}"


def read(values: Mapping[str, str], where: str) -> Labels:
    """Return the labels found in an ``environment`` or of a ``docker`` object.

    Raises LabelProblem where one is missing, or is not as the lab writes it; the message says
    which.
    """
    stack, service, kind, port, scope = (values.get(_key(name, where), "") for name in FIELDS)
    check_name(stack, _key("stack", where))
    check_name(service, _key("service", where))
    if kind not in KINDS:
        raise LabelProblem(f"{_key('kind', where)} is {kind!r}")
    if not port.isdecimal():
        raise LabelProblem(f"{_key('port', where)} is {port!r}")
    return Labels(stack, service, kind, int(port), scope)


def check_name(text: str, label: str) -> None:
    """Raise LabelProblem unless the text can name a stack or service: it becomes part of a path."""
    if not NAME.fullmatch(text):
        raise LabelProblem(f"{label} is {text!r}")
