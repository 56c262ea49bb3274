"""The service that a new experiment varies: that of the project's file, or the example.

A duel's checks read the file, so that an experiment starts the service as a duel does.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from perflab import systems
from perflab.errors import ParameterError
from perflab.project import DUELS
from perflab.stacks.spec import ServiceSpec, load_service, service_names
from perflab.trials.parameter_file import read_parameters

# The blanks of the template, for the example and for the service that a project describes.
OF_THE_EXAMPLE = {
    "WHAT": "a delay", "FACTOR": "delay_ms", "TYPE": "float", "LEVELS": "2.0, 4.0",
    "BACKEND": "auto", "PATH": "/", "NEEDS": "{}",
}  # fmt: skip
OF_THE_SERVICE = {
    **OF_THE_EXAMPLE, "WHAT": "a level", "FACTOR": "level", "TYPE": "str",
    "LEVELS": '"low", "high"', "BACKEND": "process",
}  # fmt: skip
LEVEL = {
    "scope": "start", "type": "string", "default": "low",
    "summary": "an example: put a setting of the service in its place",
}  # fmt: skip
# Keys of a project's service that an experiment takes over; it runs in the folder as it stands.
TAKEN = ("env", "also", "needs", "setup", "health", "start_timeout_s", "path")
BARE = re.compile(r"[\w-]+")


def varied(
    name: str, home: Path, file: Path | None
) -> tuple[dict[str, str], dict[PurePosixPath, str]]:
    """Return the blanks of a new experiment's template, and descriptions of its services by path.

    There are none where the project's file has no command: then it varies the example. Raises
    ParameterError as a duel would.
    """
    values = read_parameters(file, "perflab new experiment")[0] if file else {}
    if not (file and values.get("command")):
        return OF_THE_EXAMPLE, {}
    env = [*_names_of(values.get("env_file")), *values.get("env", ())]
    given = {key: values[key] for key in TAKEN if key in values} | {"env": env}
    variants = [f"{each}=command:{values['command']}" for each in (name, "again")]
    duels = systems.experiment(DUELS)
    try:
        parameters = duels.check({**given, "variants": variants, "folder": values["folder"]})
    except ParameterError as error:
        raise ParameterError("perflab new experiment", error.problems) from None
    *needed, own = duels.treatments(parameters)[0].stack.nodes
    kinds, services = {}, {}
    for node in needed:
        role, spec = node.name.rpartition(".")[2], load_service(node.service)
        kinds[role] = spec.name
        if spec.name not in service_names():
            kinds[role] = f"{name}_{role}"
            services[kinds[role]] = _described(spec, name=kinds[role])
    spec, folder = load_service(own.service), values["folder"]
    path = os.path.relpath(folder, home / "services" / name)
    services[name] = _described(
        spec,
        name=name,
        summary="The service of perflab.toml, in its folder as it stands.",
        environment={**spec.environment, "LEVEL": "{level}"},
        **{"settings.level": LEVEL},
    ).replace(f'"{folder}"', f'"{{source}}/{path}"')
    words = OF_THE_SERVICE | {"NEEDS": json.dumps(kinds), "PATH": values.get("path", "/")}
    return words, {
        PurePosixPath("services", of, "service.toml"): text for of, text in services.items()
    }


def _names_of(env_file: str | None) -> list[str]:
    """Return the names of a file's variables, which have the values of the caller's environment."""
    text = Path(env_file).read_text(encoding="utf-8") if env_file else ""
    return re.findall(r"(?m)^(?:export )?([A-Za-z_]\w*)=", text)


def _described(spec: ServiceSpec, **changed: Any) -> str:
    """Return a description of a service as TOML."""
    content = {**spec.model_dump(mode="json", exclude_defaults=True, exclude={"folder"}), **changed}
    tables = {key: value for key, value in content.items() if isinstance(value, Mapping)}
    lines = [f"{key} = {_toml(value)}" for key, value in content.items() if key not in tables]
    for key, table in tables.items():
        lines += ["", f"[{key}]", *(f"{_key(name)} = {_toml(table[name])}" for name in table)]
    return "\n".join([*lines, ""])


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _toml(name)


def _toml(value: Any) -> str:
    """Return text, numbers and lists as TOML, which are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)
