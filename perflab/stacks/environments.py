"""Python environments of services that run as plain processes: their own packages, not the lab's.

An environment holds what ``services/<name>/requirements.txt`` pins, on the lab's interpreter; it is
made once per content of that file and interpreter.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import sysconfig
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from perflab.errors import ServiceFailed
from perflab.host import installer
from perflab.host.facts import versions
from perflab.stacks.builds import made, plain
from perflab.stacks.commands import NO_WORK, Work
from perflab.stacks.spec import ServiceSpec

REQUIREMENTS = "requirements.txt"


@dataclass(frozen=True)
class Environment:
    """A service's environment in its folder, which need not exist yet."""

    folder: Path

    @property
    def python(self) -> Path:
        """Return the path of the environment's interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Return the folder of the environment's packages."""
        base = str(self.folder)
        return Path(sysconfig.get_path("purelib", "venv", {"base": base, "platbase": base}))

    def variables(self) -> dict[str, str]:
        """Return the variables that make the interpreter keep compiled modules in the folder."""
        compiled = self.folder / "compiled"
        return {"PYTHONPYCACHEPREFIX": str(compiled), "PYTHONDONTWRITEBYTECODE": ""}

    def versions(self) -> dict[str, str]:
        """Return the version of every distribution in the environment, and of ``python``."""
        listed = metadata.distributions(path=[str(self.packages)])
        return {"python": platform.python_version()} | plain(versions(listed))


def is_needed(spec: ServiceSpec) -> bool:
    """Tell whether a service needs an environment: a user's or a compiled one may need none."""
    return not spec.of_user and (spec.compile is None or bool(_requirements(spec)))


def environment(spec: ServiceSpec, root: Path) -> Environment:
    """Return a service's environment below the folder ``root``; it need not exist yet."""
    interpreter = f"{sys.version}\0{_base()}\0{platform.machine()}\0"
    digest = hashlib.sha256(interpreter.encode() + _requirements(spec)).hexdigest()
    return Environment(root / f"{spec.name}-{digest[:12]}")


def ensure(spec: ServiceSpec, root: Path, work: Work = NO_WORK) -> Environment:
    """Make a service's environment unless it exists, and return it.

    Raises ServiceFailed, with the cause and uv's last lines, where uv fails.
    """

    def make(folder: Path) -> None:
        work.tell(f"making the environment of {spec.name} (once)")
        during = f"while the environment of {spec.name} was made"
        for words in _steps(spec, Environment(folder)):
            command = [installer.uv(), *words]
            # uv reads settings in its working folder and above, where others may write; not in the
            # root.
            process = work.run(command, during, installer.variables(), Path("/"))
            if process.returncode:
                output = process.stdout + process.stderr
                problem = f"its environment cannot be made: {installer.way_out(output)}"
                raise ServiceFailed(spec.name, problem, output)

    return Environment(made(environment(spec, root).folder, make))


def _steps(spec: ServiceSpec, target: Environment) -> list[list[str]]:
    """Return uv's commands; a service that pins nothing gets no packages."""
    make = ["venv", "--allow-existing", "--python", _base(), str(target.folder)]
    pinned = str(spec.folder / REQUIREMENTS)
    fill = ["pip", "sync", "--require-hashes", "--python", str(target.python), pinned]
    return [make, fill] if _requirements(spec) else [make]


def _requirements(spec: ServiceSpec) -> bytes:
    path = spec.folder / REQUIREMENTS
    return path.read_bytes() if path.exists() else b""


def _base() -> str:
    """Return the interpreter behind the lab's own environment."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))
