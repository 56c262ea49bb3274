"""What a duel is asked for: its variants, how they are started, and the load that all get."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from perflab.credentials import reference
from perflab.load.options import LoadParameters
from perflab.load.workers.script_names import request_names
from perflab.load.workload.mix import PLACEHOLDER
from perflab.parameters import Whole
from perflab.paths import services_dir
from perflab.recordings.responses import BY_REQUEST, of_request
from perflab.systems.custom.named_requests import NamedRequest
from perflab.systems.custom.needs import told_by
from perflab.trials.run_parameters import (
    DesignParameters,
    ExplainedParameters,
    RunParameters,
)

USERS = 4
SERVER = "command:python3 server.py --port {port}"
DEFAULTS = [f"old={SERVER} --rounds 1000", f"new={SERVER} --rounds 1500"]
Assignment = Annotated[str, Field(pattern=r"(?s)^[A-Za-z_]\w*(=.*)?$")]
Need = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*=")]


def of_runs(name: str, default: Any = None, meaning: str = "") -> Any:
    """Return a field that every run has, with another default or another meaning."""
    field = copy(RunParameters.model_fields[name])
    field.default = field.default if default is None else default
    field.description = meaning or field.description
    return field


def begins_in(folder: str) -> Path:
    """Return the folder where relative places and commands begin, else the lab's own example."""
    return Path(folder) if folder else services_dir() / "duel_example"


class DuelFields(LoadParameters, ExplainedParameters, DesignParameters):
    """The parameters of a duel, each checked by itself, and what follows from them."""

    project: str = Field(
        default="",
        description="perflab.toml or duel.toml, whose tables service and load have the values of "
        "parameters that are not given",
    )
    folder: str = Field(
        default="",
        description="folder for relative places and for command variants; empty: the example that "
        "comes with the lab",
    )
    blocks: Annotated[int, Field(ge=1, le=1000)] | Literal["until_decided"] = Field(
        default=10,
        description="how often everything is measured: a block holds one trial of each variant, in "
        "random order; not given: 10, or as many as several variants need; until_decided: blocks "
        "are added until every difference is decided",
    )
    backend: Literal["auto", "docker", "process"] = of_runs(
        "backend",
        meaning="where services run: it follows from the variants (images and Dockerfiles in "
        "Docker, all others as processes)",
    )
    least_blocks: int = of_runs("least_blocks", 10)
    most_blocks: int = of_runs("most_blocks", 25)
    variants: Annotated[tuple[str, ...], Whole()] = Field(
        default=tuple(DEFAULTS),
        min_length=2,
        description="NAME=KIND:WHAT, the first is the baseline; kinds: git:REPOSITORY@REVISION, "
        "tree:FOLDER, command:WORDS, url:http://HOST:PORT, image:NAME:TAG, dockerfile:FOLDER",
    )
    against: str = Field(
        default="",
        description="instead of variants: compare the commit that is checked out in the folder, "
        "new, with its merge base with this revision, old",
    )
    working_tree: bool = Field(
        default=False,
        description="with against: compare the files as they are, with uncommitted changes",
    )
    command: str = Field(
        default="",
        description="command that starts a git or tree variant, with {port}; empty: its Dockerfile "
        "starts it",
    )
    prepare: str = Field(
        default="",
        description="shell command that is run once in the files of each git or tree variant, for "
        "example to install its packages; only with command",
    )
    env: Annotated[tuple[Assignment, ...], Whole()] = Field(
        default=(),
        description="variables that variants get as well: NAME, with the value that it has in your "
        "environment, or NAME=VALUE, with the placeholders of what it needs; credentials are "
        "recorded nowhere",
    )
    env_file: str = Field(
        default="",
        description="file with lines NAME=VALUE, which are recorded nowhere; env overrules it",
    )
    also: tuple[str, ...] = Field(
        default=(),
        description="addresses of stores on loopback, HOST:PORT, that variants may use although "
        "the lab did not start them; their data is shared and changed by the load",
    )
    needs: Annotated[tuple[Need, ...], Whole()] = Field(
        default=(),
        description="stores that each variant gets of its own, started afresh for every block: "
        "NAME=postgres or NAME=redis, perhaps with a version (db=postgres:18), or another server "
        "in an image (a table, as text JSON) with image, port and env; {NAME.url}, {NAME.host}, "
        "{NAME.port}, {NAME.user}, {NAME.password} and {NAME.name} stand for what it tells in env, "
        "command and setup",
    )
    setup: str = Field(
        default="",
        description="command that fills what a variant needs, once per run; every block begins with"
        " a copy of what it left; with an image it runs before every block; no shell reads it: "
        "several commands are sh -c '... && ...'",
    )
    health: str = Field(
        default="",
        description="path that answers 200 when a variant is ready; empty: the path of the "
        "requests, with any status below 500",
    )
    metrics: str = Field(
        default="",
        description="path of the service's own metrics in Prometheus's text format, like /metrics; "
        "with why, what they count in a request is compared as well",
    )
    start_timeout_s: float = Field(
        default=60.0, gt=0, le=3600, description="seconds within which a variant must be ready"
    )
    path: str = Field(default="/", description="path and query of the request")
    requests: tuple[NamedRequest, ...] = Field(
        default=(),
        description="several requests instead of path, method and body, each with name, weight and "
        "path, and perhaps method, headers, body, expect_status and expect_body; {uuid}, {user}, "
        "{random:1-100} and {line:FILE} differ each time, and all but {uuid} are the same for all "
        "variants",
    )
    users: int = Field(
        default=USERS, ge=1, le=20_000, description="closed loop: each waits for its answer"
    )
    duration_s: float = Field(
        default=2.0, ge=0.1, le=3600, description="seconds of each trial that count"
    )
    # The base has a number, which here may be left open.
    warmup_s: float | None = Field(  # type: ignore[assignment]
        default=None,
        ge=0,
        le=3600,
        description="seconds before them, recorded apart; none: until response times and CPU per "
        "request stop falling, 1 to 20 s, the same for all",
    )
    timeout_s: float = Field(
        default=10.0, gt=0, le=600, description="seconds after which a request counts as failed"
    )

    @property
    def finds_warmup(self) -> bool:
        """Whether the lab finds the warm-up."""
        return self.warmup_s is None

    @property
    def roles(self) -> dict[str, str]:
        """Return what variants need: the kind of a store or an image, by its name."""
        return {name: kind for name, _, kind in (text.partition("=") for text in self.needs)}

    @property
    def told(self) -> list[str]:
        """Return the placeholders of what variants need."""
        return told_by(self.roles)

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables that variants get; those of the caller's are references."""
        pairs = (text.partition("=") for text in self.env)
        return {name: value if equals else reference(name) for name, equals, value in pairs}

    @property
    def first_path(self) -> str:
        """Return a path to ask while a variant starts: that of the first GET."""
        paths = [each.path for each in self.requests if each.method.upper() in ("", "GET")]
        first = next(iter(paths), "/") if self.requests else self.path
        return PLACEHOLDER.sub("1", first)

    @cached_property
    def request_names(self) -> tuple[str, ...]:
        """Return the names of several requests, or those that are known of a script's."""
        if self.script:
            return request_names(self.script)[0]
        return tuple(each.name for each in self.requests)

    @property
    def named_responses(self) -> tuple[str, ...]:
        """Return the responses of each request by name."""
        return tuple(of_request(base, name) for name in self.request_names for base in BY_REQUEST)
