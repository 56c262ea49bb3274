"""The options of one load: the parameters of ``send_load``, and what ``perflab load`` is given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from perflab import credentials
from perflab.errors import ParameterError, TargetRefused
from perflab.load.body_files import content_of
from perflab.load.clients.targets import refuse_foreign, split
from perflab.load.flags import FLAGS, flag_of
from perflab.load.literals import SECRET_NAME, by_reference
from perflab.load.workload.request import Statuses
from perflab.load.workload.workload import Objective
from perflab.parameters import Parameters, Whole, did_you_mean, entry_of, message_of

if TYPE_CHECKING:
    from perflab.load.workload.workload import Workload

DEFAULT_DURATION_S = 10.0
_STAGE = re.compile(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?:(\d+(?:\.\d+)?)s?")
# By option: the options that it makes no use of; the options of which it needs one.
_UNUSED = {
    "burst": ("requests", "duration_s", "warmup_s"),
    "rate": ("requests",),
    "stages": ("requests", "duration_s"),
    "script": ("requests", "think_time_s", "pacing_s"),
}
# What a script says of each request, with the values that are not given.
_OF_A_REQUEST: dict[str, Any] = {
    "method": "", "body": "", "expect_status": 200, "expect_body": "", "expect_bytes": -1,
    "redirects": 0, "stream": "",
}  # fmt: skip
_NEEDED = {
    "script": ("users",),
    "think_time_s": ("users",),
    "pacing_s": ("users",),
    "ramp_s": ("users",),
    "min_chunks": ("stream",),
    "end_marker": ("stream",),
}
# Fields of a workload whose option has another name; fields that are no option.
_OPTION_OF = {"size": "burst", "most": "connections", "max_duration_s": "duration_s"}
_OPTION_OF |= {"failures": "stop_after_failures"}
_PARTS = ("request", "connections", "stop", "stages")


def option(name: str, default: Any, **limits: Any) -> Any:
    """Return a field that the flag of this name sets."""
    return Field(default=default, description=FLAGS[name].text, **limits)


def _all(statuses: int | tuple[int, ...]) -> tuple[int, ...]:
    return statuses if isinstance(statuses, tuple) else (statuses,)


def _header(text: str) -> str:
    """Return the text of a header; the error does not repeat it: it may be a secret."""
    if ":" not in text:
        raise ValueError("must be like 'Name: value'")
    return text


def _objective(given: Any) -> Objective:
    return Objective.of_text(str(given))


class LoadParameters(Parameters):
    """The load of one address: what ``perflab load`` and a duel's variants have in common."""

    users: int = option("users", 0, ge=0)
    think_time_s: float = option("think_time", 0.0, ge=0, le=3_600)
    rate: float = option("rate", 0.0, ge=0, le=200_000)
    arrivals: Literal["constant", "poisson"] = option("arrivals", "constant")
    method: str = option("method", "")
    headers: Annotated[tuple[Annotated[str, AfterValidator(_header)], ...], Whole()] = option(
        "headers", ()
    )
    header_file: str = option("header_file", "")
    secret: tuple[Annotated[str, Field(pattern=f"^{SECRET_NAME.pattern}$")], ...] = option(
        "secret", ()
    )
    body: str = option("body", "")
    expect_status: Statuses = option("expect_status", "200", validate_default=True)
    expect_body: str = option("expect_body", "")
    connection: Literal["keep-alive", "per-request"] = option("connection", "keep-alive")
    timeout_s: float = option("timeout", 30.0, gt=0, le=3_600)
    allow_targets: tuple[str, ...] = option("allow_targets", ())
    duration_s: float = option("duration", 0.0, ge=0)
    warmup_s: float = option("warmup", 0.0, ge=0)
    script: str = option("script", "")

    @model_validator(mode="before")
    @classmethod
    def _credentials_by_reference(cls, values: Any) -> Any:
        return by_reference(values) if isinstance(values, Mapping) else values

    @field_validator("expect_status")
    @classmethod
    def _can_be_answers(cls, expected: int | tuple[int, ...]) -> int | tuple[int, ...]:
        # Any status (0) would make a success of every answer.
        if any(not 100 <= status <= 599 for status in _all(expected)):
            raise ValueError("a status is a number from 100 to 599; several are 201,409")
        return expected

    @field_validator("script")
    @classmethod
    def _has_a_whole_path(cls, script: str) -> str:
        # Workers run in another folder.
        place, colon, name = script.rpartition(":")
        return f"{Path(place).resolve()}{colon}{name}" if place.endswith(".py") else script

    @field_validator("headers")
    @classmethod
    def _stand_once(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        names = [text.partition(":")[0].strip().lower() for text in texts]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"'{twice[0]}' is given twice; give its values in one header")
        return texts

    def words(self, path: str) -> dict[str, Any]:
        """Return the workload as data, whose requests go to ``path``."""
        headers = [text.partition(":") for text in self.headers]
        return {
            "request": {
                "method": (self.method or ("POST" if self.body else "GET")).upper(),
                "path": path,
                "headers": {name.strip(): value.strip() for name, _, value in headers},
                "body": content_of(self.body),
                "expect_status": self.expect_status,
                "expect_body": self.expect_body,
            },
            "arrivals": self.loop(),
            "connections": self.connection.replace("-", "_"),
            "timeout_s": self.timeout_s,
        }

    def loop(self) -> Mapping[str, Any]:
        """Return the arrivals as data: of a script, an open loop by its rate, or a closed one."""
        if self.script:
            return self._scripted(self.duration_s)
        length_s = self.warmup_s + self.duration_s
        if self.rate:
            return {
                "kind": "open",
                "stages": ({"rate": self.rate, "duration_s": length_s},),
                "arrivals": self.arrivals,
                "warmup_s": self.warmup_s,
            }
        return {
            "kind": "closed",
            "users": self.users,
            "duration_s": self.duration_s,
            "warmup_s": self.warmup_s,
            "think_time_s": self.think_time_s,
            "max_duration_s": length_s,
        }

    def _scripted(self, duration_s: float) -> Mapping[str, Any]:
        from perflab.load.workers.scripted import find

        find(self.script)
        return {
            "kind": "scripted", "script": self.script, "users": self.users,
            "duration_s": duration_s, "warmup_s": self.warmup_s,
        }  # fmt: skip


class LoadOptions(LoadParameters):
    """The options of one load without an experiment; 0 or nothing means not given."""

    url: str
    stages: str = option("stages", "")
    burst: int = option("burst", 0)
    seed: int = option("seed", 0)
    pacing_s: float = option("pacing", 0.0)
    ramp_s: float = option("ramp", 0.0)
    connections: int = option("connections", 0)
    expect_bytes: int = option("expect_bytes", -1)
    redirects: int = option("redirects", 0)
    stream: Literal["", "sse", "ndjson"] = option("stream", "")
    min_chunks: int = option("min_chunks", 0)
    end_marker: str = option("end_marker", "")
    http2: bool = option("http2", False)
    insecure: bool = option("insecure", False)
    ca_file: str = option("ca_file", "")
    requests: int = option("requests", 0)
    stop_after_failures: int = option("stop_after_failures", 0)
    objectives: tuple[Annotated[Objective, BeforeValidator(_objective)], ...] = option(
        "objectives", ()
    )

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> Self:
        """Return the options, given by the names of their flags: ``duration`` is ``duration_s``."""
        names = {name.removesuffix("_s"): name for name in cls.model_fields}
        known = {*names, *cls.model_fields}
        unknown = [word for word in words if word not in known]
        if unknown:
            problems = [f"no option '{word}'{did_you_mean(word, known)}" for word in unknown]
            raise ParameterError("perflab load", problems)
        try:
            return cls.model_validate({names.get(word, word): words[word] for word in words})
        except ValidationError as error:
            raise ParameterError("perflab load", _sentences(error)) from None

    def workload(self) -> Workload:
        """Return the workload that the options describe, or raise ParameterError."""
        refuse_foreign(self.url, self.allow_targets)
        origin, path = split(self.url)
        if origin.scheme not in ("http", "https"):
            raise TargetRefused(f"'{self.url}': load can be sent to http and https addresses only")
        # Imported late: ``--help`` needs none of these.
        from perflab.load.clients.exchange import Prepared
        from perflab.load.clients.library_client import out_of_reach
        from perflab.load.workload.workload import Workload

        problems = self._conflicts()
        try:
            if not problems:
                workload = Workload.model_validate(self.words(path))
                names = credentials.names_in(workload.model_dump_json())
                problems = credentials.look_up(names)[1]
                request = workload.request.with_credentials()
                Prepared(request, origin, workload.connections)
                problems += out_of_reach(workload)
                if not problems:
                    return workload
        except ValidationError as error:
            problems = _sentences(error)
        except ParameterError as error:
            problems = list(error.problems)
        raise ParameterError("perflab load", problems)

    def _conflicts(self) -> list[str]:
        """Return the problems of options that do not go together."""
        kinds = ("users", "rate", "stages", "burst")
        chosen = [flag_of(name) for name in kinds if getattr(self, name)]
        problems = []
        if len(chosen) != 1:
            listed = ", ".join(map(flag_of, kinds))
            problems.append(
                f"give one of {listed}" + (f", not {' and '.join(chosen)}" if chosen else "")
            )
        if self.arrivals == "poisson" and not (self.rate or self.stages):
            problems.append("--arrivals poisson needs --rate or --stages")
        problems += [
            f"{flag_of(other)} does not go with {flag_of(name)}"
            for name, others in _UNUSED.items()
            for other in others
            if getattr(self, name) and getattr(self, other)
        ]
        problems += [
            f"{flag_of(name)} needs {' or '.join(map(flag_of, others))}"
            for name, others in _NEEDED.items()
            if getattr(self, name) and not any(getattr(self, other) for other in others)
        ]
        problems += [
            f"{flag_of(name)} does not go with --script, where each request says it: "
            "self.request('PUT', '/path', body=..., expect_status=201)"
            for name, default in _OF_A_REQUEST.items()
            if self.script and getattr(self, name) != default
        ]
        length_s = self.warmup_s + (self.duration_s or DEFAULT_DURATION_S)
        if self.script and self.ramp_s > length_s:
            problems.append(
                f"--ramp {self.ramp_s:g}: it is longer than the load ({length_s:g} s), so not all "
                "users would join; make the load longer (--duration)"
            )
        return problems + [
            f"--objective {bound}: only streams have that time; give --stream sse or ndjson"
            for bound in self.objectives
            if bound.of != "response" and not (self.stream or self.script)
        ]

    def words(self, path: str) -> dict[str, Any]:
        """Return the workload as data; raises ParameterError where a file cannot be read."""
        workload = super().words(path)
        request = workload["request"] | {"redirects": self.redirects}
        request["expect_bytes"] = self.expect_bytes
        if self.stream:
            request |= {"stream": self.stream, "min_chunks": self.min_chunks or 1}
            request["end_marker"] = self.end_marker
        return workload | {
            "request": request,
            "connections": {"reuse": workload["connections"], "most": self.connections},
            "client": "http2" if self.http2 else "lean",
            "verify_tls": not self.insecure,
            "ca_file": self._bundle(),
            "stop": {"failures": self.stop_after_failures},
            "objectives": self.objectives,
        }

    def loop(self) -> Mapping[str, Any]:
        """Return the arrivals as data."""
        if self.burst:
            return {"kind": "burst", "size": self.burst}
        duration_s = self.duration_s or (0.0 if self.requests else DEFAULT_DURATION_S)
        if self.script:
            joining = {"join_s": self.ramp_s / self.users, "seed": self.seed}
            return {**self._scripted(duration_s or DEFAULT_DURATION_S), **joining}
        if self.users:
            pace = {"pacing_s": self.pacing_s, "ramp_s": self.ramp_s, "requests": self.requests}
            max_duration_s = duration_s + self.warmup_s if duration_s else 3_600.0
            length = {"duration_s": duration_s, "max_duration_s": max_duration_s}
            return {**super().loop(), **length, **pace}
        stages = _stages(self.stages) if self.stages else []
        if self.rate:
            length_s = self.warmup_s + (self.duration_s or DEFAULT_DURATION_S)
            stages = [{"rate": self.rate, "duration_s": length_s}]
        return {
            "kind": "open", "stages": stages, "arrivals": self.arrivals, "seed": self.seed,
            "warmup_s": self.warmup_s,
        }  # fmt: skip

    def _bundle(self) -> str:
        """Return the absolute path: workers run in another folder."""
        if self.ca_file and not Path(self.ca_file).is_file():
            raise ParameterError("perflab load", [f"--ca-file {self.ca_file}: no such file"])
        return str(Path(self.ca_file).resolve()) if self.ca_file else ""


def _stages(text: str) -> list[dict[str, float]]:
    """Read ``100:10,100-500:30``: a rate, or from one to another, and seconds."""
    stages, problems = [], []
    for part in text.split(","):
        match = _STAGE.fullmatch(part.strip())
        if match is None:
            problems.append(
                f"--stages '{part}' is not RATE:SECONDS or FROM-TO:SECONDS, like 100:10,100-500:30"
            )
            continue
        start, end, duration = match.groups()
        stage = {"rate": float(start), "duration_s": float(duration)}
        stages.append(stage | ({"to_rate": float(end)} if end else {}))
    if problems:
        raise ParameterError("perflab load", problems)
    return stages


def _sentences(error: ValidationError) -> list[str]:
    """Return one sentence for each problem, with the flag of its option."""
    sentences, known = [], LoadOptions.model_fields
    for item in error.errors():
        fields = [field for field in map(str, item["loc"]) if field not in _PARTS]
        if len(fields) > 1 and fields[0] == "arrivals":
            fields = fields[1:]
        options = [name for field in fields if (name := _OPTION_OF.get(field, field)) in known]
        value = item["input"]
        # The messages of our own checks name the value already, or keep it back.
        is_own = item["type"] == "value_error" or not isinstance(value, (str, int, float))
        shown = "" if is_own else f" {value!r}"
        if options[-1:] == ["headers"] and isinstance(item["loc"][-1], int):
            shown = f" {entry_of(item)}"
        prefix = f"{flag_of(options[-1])}{shown}: " if options else ""
        sentences.append(prefix + message_of(item))
    return list(dict.fromkeys(sentences))
