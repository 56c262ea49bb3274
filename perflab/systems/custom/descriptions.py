"""From a variant to a service as the stacks know it: a folder with its description, by content."""

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

# A process begins in a folder and becomes the command, so that signals reach it.
BEGIN_IN = ("sh", "-c", 'cd -- "$0" && exec "$@"')
# The command's words stand in the description; the preparation's do not: it is a shell's own.
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
    """How variants are started, and when one is ready; the same for all of them.

    ``folder`` is where a command variant begins; ``asked`` is the path of the workload, whose any
    answer will do where no ``health`` path is named.
    """

    folder: Path
    command: str
    prepare: str
    health: str
    asked: str
    timeout_s: float


def described(variant: Variant, start: Start) -> str:
    """Write the description of a variant's service, once; return the service's name."""
    words, script = _words(variant, start)
    digest = hashlib.sha256(json.dumps([words, script, variant.text]).encode()).hexdigest()
    # An engine's names have small letters alone.
    spoken = re.sub("[^a-z0-9]+", "-", variant.name.lower()).strip("-")
    name = f"{VARIANT}{spoken}-{digest[:12]}"

    def make(folder: Path) -> None:
        if script:
            (folder / SCRIPT).write_text(script)
        if variant.kind == "git" and not start.command:
            tree = folder / "tree"
            tree.mkdir()
            extract(Path(variant.place), variant.commit, tree)
            # The folder is renamed when it is whole.
            words["folder"] = str(root / name / "tree")
        (folder / "service.toml").write_text(_toml({"name": name, **words}))

    own_folder(state_dir())
    root = own_folder(variants_dir())
    drop_unused(root)
    made(root / name, make)
    return name


def _words(variant: Variant, start: Start) -> tuple[dict[str, Any], str]:
    """Return the description as plain words, and the script that prepares a process."""
    words: dict[str, Any] = {
        "summary": variant.text,
        "command": [],
        "of_user": True,
        "environment": {"PORT": "{port}", "HOST": "{host}"},
        "health": {
            "http": start.health or start.asked,
            "any_status": not start.health,
            "timeout_s": start.timeout_s,
        },
    }
    match variant.kind:
        case "command":
            words["command"] = [*BEGIN_IN, str(start.folder), *words_of(variant.place)]
        case "git" if start.command:
            words["command"] = [*BEGIN_IN, "{artifacts}", *words_of(start.command)]
            words["process"] = {"prepare": ["sh", "{source}/" + SCRIPT, "{artifacts}"]}
            place = shlex.quote(variant.place)
            script = PREPARE.format(repository=place, commit=variant.commit, prepare=start.prepare)
            return words, script
        case "dockerfile":
            words["folder"] = variant.place
        case "image":
            words["docker"] = {"image": variant.place}
    return words, ""


def _toml(words: Mapping[str, Any]) -> str:
    """Return words as TOML; its strings, lists and numbers are those of JSON."""
    plain = [f"{name} = {_value(value)}" for name, value in words.items()]
    return "\n".join(plain) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_value(each)}" for name, each in value.items()) + "}"
    return json.dumps(value).replace("\x7f", "\\u007f")
