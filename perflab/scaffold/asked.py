"""What a new experiment is asked to measure: a running address, a command, a folder, an example."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perflab.errors import TargetRefused
from perflab.load.targets import split

Kind = Literal["example", "url", "command", "folder"]
DOCKERFILE, DESCRIPTION = "Dockerfile", "service.toml"
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
KNOWN = ("host", "port")


@dataclass(frozen=True)
class Service:
    """What is measured; ``words`` is the command that starts it, ``folder`` where that is done."""

    kind: Kind
    url: str = ""
    words: tuple[str, ...] = ()
    folder: Path = Path()

    @property
    def is_described(self) -> bool:
        """Whether its folder says itself how it is started."""
        return self.kind == "folder" and (self.folder / DESCRIPTION).is_file()


def service_of(given: str, command: str, here: Path, problems: list[str]) -> Service:
    """Return what ``--service`` and ``--command`` mean, seen from a folder; add what is wrong."""
    folder = (here / Path(given).expanduser()).resolve() if given else here
    if command and not (given and folder.is_dir()):
        problems.append("--command says how what is in a folder starts; name that with --service")
    if not given:
        return Service("example")
    if "://" in given:
        try:
            origin, _ = split(given)
            if origin.scheme not in ("http", "https"):
                problems.append(f"--service {given}: load goes to http and https addresses")
        except TargetRefused as error:
            problems.append(f"--service {error}")
        return Service("url", url=given)
    if folder.is_dir():
        found = Service("folder", folder=folder, words=_words_for(folder, command, problems))
        if found.is_described and command:
            problems.append(f"--command: {folder / DESCRIPTION} says already how it starts")
        return found
    words = _split("--service", given, problems)
    if words and not _program(words[0], here):
        problems.append(
            f"--service {given}: neither an address (http://...), nor a folder here, nor a command "
            f"('{words[0]}' is no program)"
        )
    return Service("command", words=words, folder=here)


def _words_for(folder: Path, command: str, problems: list[str]) -> tuple[str, ...]:
    if command:
        return _split("--command", command, problems)
    if (folder / DESCRIPTION).is_file():
        return ()
    file = folder / DOCKERFILE
    if not file.is_file():
        problems.append(
            f"--service {folder}: holds neither {DESCRIPTION} nor {DOCKERFILE}; say how it is "
            "started: --command 'python3 server.py --port {port}'"
        )
        return ()
    text = file.read_text(encoding="utf-8", errors="replace")
    words = _exec_form(text)
    if words is None:
        problems.append(
            f'{file}: has no CMD of the form ["program", "word"]; say how it is started: '
            "--command 'python3 server.py --port {port}'"
        )
    return words or ()


def _exec_form(dockerfile: str) -> tuple[str, ...] | None:
    """Return the words of the last CMD where it is a list, and nothing else would be started."""
    if re.search(r"^\s*ENTRYPOINT\b", dockerfile, re.I | re.M):
        return None
    found = re.findall(r"^\s*CMD\s+(\[.*\])\s*$", dockerfile, re.I | re.M)
    try:
        words = json.loads(found[-1]) if found else None
    except ValueError:
        return None
    return tuple(map(str, words)) if words else None


def _split(option: str, command: str, problems: list[str]) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        problems.append(f"{option} {command}: {error}")
        return ()
    unknown = [name for name in PLACEHOLDER.findall(command) if name not in KNOWN]
    if unknown:
        problems.append(
            f"{option}: {{{unknown[0]}}} is none of {', '.join(f'{{{name}}}' for name in KNOWN)}"
        )
    if not words:
        problems.append(f"{option} is empty")
    return words


def _program(word: str, here: Path) -> bool:
    return shutil.which(word) is not None or ("/" in word and (here / word).is_file())


def toml_list(words: Sequence[str]) -> str:
    """Return words as a list in TOML (of which JSON's strings are a part)."""
    return json.dumps(list(words), ensure_ascii=False)
