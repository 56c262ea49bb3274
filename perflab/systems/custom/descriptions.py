"""Writes the description of a variant's service into a folder that is named by its content."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.host.files import own_folder
from perflab.paths import state_dir, variants_dir
from perflab.stacks.builds import drop_unused, made
from perflab.stacks.spec import VARIANT
from perflab.systems.custom.revisions import extract
from perflab.systems.custom.variants import Variant, words_of

# The shell becomes the command, so that signals reach it.
BEGIN_IN = ("sh", "-c", 'cd -- "$0" && exec "$@"')
PREPARE = """set -eu
git -C {repository} archive --format=tar --output="$1/.archive.tar" {commit}
tar -xf "$1/.archive.tar" -C "$1"
rm "$1/.archive.tar"
cd "$1"
{prepare}
"""
SCRIPT = "prepare.sh"


@dataclass(frozen=True)
class Start:
    """How all variants are started, and when they are ready.

    ``folder`` is where a command variant begins; ``workload_path`` shows with any answer that a
    variant is ready if no ``health`` path is named.
    """

    folder: Path
    command: str
    prepare: str
    health: str
    workload_path: str
    timeout_s: float


def described(variant: Variant, start: Start) -> str:
    """Return the name of a variant's service; write its description unless it is there."""
    description, script = _description(variant, start)
    digest = hashlib.sha256(json.dumps([description, script, variant.text]).encode()).hexdigest()
    # Container engines allow only small letters in names.
    stem = re.sub("[^a-z0-9]+", "-", variant.name.lower()).strip("-")
    name = f"{VARIANT}{stem}-{digest[:12]}"

    def make(folder: Path) -> None:
        if script:
            (folder / SCRIPT).write_text(script)
        if variant.kind == "git" and not start.command:
            tree = folder / "tree"
            tree.mkdir()
            extract(Path(variant.place), variant.commit, tree)
            # ``folder`` is temporary; it gets this name when it is complete.
            description["folder"] = str(root / name / "tree")
        (folder / "service.toml").write_text(_toml({"name": name, **description}))

    own_folder(state_dir())
    root = own_folder(variants_dir())
    drop_unused(root)
    made(root / name, make)
    return name


def _description(variant: Variant, start: Start) -> tuple[dict[str, Any], str]:
    """Return the entries of the description, and the script that prepares a process."""
    description: dict[str, Any] = {
        "summary": variant.text,
        "command": [],
        "of_user": True,
        "environment": {"PORT": "{port}", "HOST": "{host}"},
        "health": {
            "http": start.health or start.workload_path,
            "any_status": not start.health,
            "timeout_s": start.timeout_s,
        },
    }
    match variant.kind:
        case "command":
            description["command"] = [*BEGIN_IN, str(start.folder), *words_of(variant.place)]
        case "git" if start.command:
            description["command"] = [*BEGIN_IN, "{artifacts}", *words_of(start.command)]
            description["process"] = {"prepare": ["sh", "{source}/" + SCRIPT, "{artifacts}"]}
            place = shlex.quote(variant.place)
            script = PREPARE.format(repository=place, commit=variant.commit, prepare=start.prepare)
            return description, script
        case "dockerfile":
            description["folder"] = variant.place
        case "image":
            description["docker"] = {"image": variant.place}
    return description, ""


def _toml(description: Mapping[str, Any]) -> str:
    """Return entries as TOML, whose strings, lists and numbers are written as in JSON."""
    lines = [f"{name} = {_value(value)}" for name, value in description.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_value(item)}" for name, item in value.items()) + "}"
    return json.dumps(value).replace("\x7f", "\\u007f")
