"""Environments of services that run as plain processes: each has its own packages, none the lab's.

An environment holds what ``services/<name>/requirements.txt`` pins, as the service's image does, on
the interpreter that the lab runs on. It is made once per content of that file and interpreter.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from perflab.errors import BackendUnavailable, ServiceFailed
from perflab.host import installer
from perflab.stacks.builds import drop_unused, made, plain
from perflab.stacks.patience import Interrupted, run_command
from perflab.stacks.spec import ServiceSpec

REQUIREMENTS = "requirements.txt"


@dataclass(frozen=True)
class Environment:
    """A service's environment in its folder, which need not be there yet."""

    folder: Path

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Return the folder that its packages are in."""
        base = str(self.folder)
        return Path(sysconfig.get_path("purelib", "venv", {"base": base, "platbase": base}))

    def variables(self) -> dict[str, str]:
        """Return the variables with which its interpreter keeps compiled modules, also its own's.

        They are compiled when they are first imported.
        """
        compiled = self.folder / "compiled"
        return {"PYTHONPYCACHEPREFIX": str(compiled), "PYTHONDONTWRITEBYTECODE": ""}

    def versions(self) -> dict[str, str]:
        """Return the version of every distribution in it, and of its ``python``."""
        listed = metadata.distributions(path=[str(self.packages)])
        return {"python": platform.python_version()} | plain(
            {item.name: item.version for item in listed}
        )


def is_needed(spec: ServiceSpec) -> bool:
    """Whether it needs one: what is compiled and pins nothing does not, nor what brings its own."""
    if spec.of_user:
        return False
    return spec.compile is None or bool(_requirements(spec))


def environment(spec: ServiceSpec, root: Path) -> Environment:
    """Return the place of a service's environment below a folder of them."""
    return Environment(root / f"{spec.name}-{_identity(_requirements(spec))}")


def ensure(
    spec: ServiceSpec,
    root: Path,
    tell: Callable[[str], None],
    interrupted: Interrupted,
    labels: Mapping[str, str] | None = None,
) -> Environment:
    """Return a service's environment, made when it is not there.

    ``labels`` are for the processes that this takes. Whoever makes one drops those that nobody has
    used for a month. Raises BackendUnavailable where the lab's own environment lacks uv, and
    ServiceFailed, with the cause and uv's last lines, where it fails.
    """
    own = environment(spec, root)

    def make(folder: Path) -> None:
        drop_unused(root)
        tell(f"making the environment of {spec.name} (once)")
        variables = {**installer.variables(), **(labels or {})}
        for words in _steps(spec, Environment(folder)):
            _run(spec, [_uv(), *words], interrupted, variables)

    made(own.folder, make)
    return own


def _steps(spec: ServiceSpec, making: Environment) -> list[list[str]]:
    """Return uv's words; a service that pins nothing has an interpreter and nothing else."""
    steps = [["venv", "--relocatable", "--allow-existing", "--python", _base(), str(making.folder)]]
    if _requirements(spec):
        pinned = str(spec.folder / REQUIREMENTS)
        own = ["--python", str(making.python)]
        steps.append(["pip", "sync", "--require-hashes", *own, pinned])
    return steps


def _run(
    spec: ServiceSpec, command: list[str], interrupted: Interrupted, variables: dict[str, str]
) -> None:
    during = f"while the environment of {spec.name} was made"
    # In the root folder: uv reads settings from where it works and above, where others may write.
    done = run_command(command, interrupted, during, os.environ | variables, Path("/"))
    if done.returncode:
        printed = done.stdout + done.stderr
        why = f"its environment cannot be made: {installer.way_out(printed)}"
        raise ServiceFailed(spec.name, why, "\n".join(printed.splitlines()[-20:]))


def _uv() -> str:
    try:
        return installer.uv()
    except (ImportError, FileNotFoundError):
        raise BackendUnavailable("the package 'uv' is not installed: run 'make setup'") from None


def _requirements(spec: ServiceSpec) -> bytes:
    path = spec.folder / REQUIREMENTS
    return path.read_bytes() if path.exists() else b""


def _base() -> str:
    """Return the interpreter behind the lab's own environment."""
    base = getattr(sys, "_base_executable", sys.executable)
    return os.path.realpath(base)


def _identity(requirements: bytes) -> str:
    interpreter = f"{sys.version}\0{_base()}\0{platform.machine()}\0"
    return hashlib.sha256(interpreter.encode() + requirements).hexdigest()[:12]
