"""What keeps a command from starting a service here: a program that is missing, a fixed port."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from perflab.systems.custom.revisions import holds
from perflab.systems.custom.trees import kept_in
from perflab.systems.custom.variants import Variant

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# The first program of a shell's line, where it stands there plainly.
FIRST = re.compile(r"\s*(?:(?!PATH=)[A-Za-z_]\w*=[\w./:-]*\s+)*([\w.+-]+)(?=\s|$)")
PORT = re.compile(
    r"(?:--(?:server[.-])?port[= ]|(?:-b|--bind|--listen|runserver)[= ](?:[\w.\[\]]*:)?)(\d{2,5})\b"
)


def problems(
    variants: Sequence[Variant], commands: Iterable[tuple[str, str]], prepare: str, folder: Path
) -> list[str]:
    """Return why commands cannot start variants here.

    ``commands`` are those that start files and those of a setup, after their names; command
    variants begin in ``folder``, and ``prepare`` makes what files lack.
    """
    own = [(each.name, each.place) for each in variants if each.kind == "command"]
    trees = [each for each in variants if each.is_tree]
    if not (own or trees):
        return []  # Commands are within images.
    found: list[str] = []
    for name, text in [*own, *(pair for pair in commands if pair[1])]:
        program = next(_programs(text), "")
        # What prepare makes is not known yet, and one commit may lack what others have.
        if "/" not in program:
            problem = _not_here(program) if program and not shutil.which(program) else ""
        elif Path(program).expanduser().is_absolute() or (name, text) in own or not trees:
            place = folder / Path(program).expanduser()
            problem = "" if place.exists() else f"there is no {place}"
        elif not prepare and not any(_has(tree, program) for tree in trees):
            problem = f"no variant has a file {program}: let prepare make it"
        else:
            problem = ""
        if problem := problem or _fixed_port(text):
            found.append(f"{name}: {problem}")
    first = FIRST.match(prepare)
    if first and not _shell_knows(first[1]):
        found.append(f"prepare: {_not_here(first[1])}")
    return found


def _has(tree: Variant, file: str) -> bool:
    if tree.kind == "git":
        return holds(Path(tree.place), tree.commit, file)
    return (kept_in(tree.commit, Path(tree.place)) / file).exists()


def _programs(command: str) -> Iterator[str]:
    """Yield the words of a command from its program on; nothing where a placeholder names it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return
    for word in words:
        if "{" in word or (word.startswith("-") and words[0] == "env"):
            return
        if word != "env" and not ASSIGNMENT.match(word):
            yield word


def _not_here(program: str) -> str:
    return f"there is no program '{program}' here: install it, or name the one that is there"


@lru_cache
def _shell_knows(name: str) -> bool:
    """Return whether a name is a program, or a word of the shell's own."""
    return not subprocess.run(["sh", "-c", 'command -v "$0"', name], capture_output=True).returncode


def _fixed_port(command: str) -> str:
    match = PORT.search(command)
    if not match or "{port}" in command:
        return ""
    return f"it has port {match[1]}, and the lab gives each variant its own: write {{port}} there"
