"""The files of a new experiment, from the templates of the package."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from perflab.load.targets import is_loopback, split
from perflab.scaffold.asked import DESCRIPTION, Service, toml_list

# Their endings keep tools from taking templates for modules of the package.
SUFFIX = ".in"
NAME = "NAME"
PARTS = {
    "example": ("common", "stack", "example"),
    "command": ("common", "stack", "given"),
    "folder": ("common", "stack", "given"),
    "url": ("common", "url"),
}
IN_NOTEBOOK = ("ALLOWED_NOTEBOOK",)
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "venv", "node_modules", "__pycache__", ".ipynb_checkpoints"
)


def files_of(name: str, service: Service, path: str, health: str) -> dict[PurePosixPath, str]:
    """Return the content of every file by its place in the experiment's folder.

    Parameters
    ----------
    path, health : str
        What the load asks the service for, and by what it shows that it can be used.
    """
    words = _words(name, service, path, health)
    found = {}
    root = resources.files(__package__) / "templates"
    for part in PARTS[service.kind]:
        for place, text in _texts(root / part, PurePosixPath()):
            found[PurePosixPath(str(place).replace(NAME, name))] = _filled(text, words)
    if service.is_described:
        found.pop(PurePosixPath("services", name, DESCRIPTION))
    return found


def write(home: Path, files: Mapping[PurePosixPath, str], service: Service) -> None:
    """Write the files beside their place and rename them into it: all of them or none.

    Raises
    ------
    FileExistsError
        The folder has come to be since it was looked at; it is as it was.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    making = home.with_name(f".{home.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    try:
        if service.kind == "folder":
            copy = making / "services" / home.name
            shutil.copytree(service.folder, copy, symlinks=True, ignore=NOT_COPIED)
        for place, text in files.items():
            file = making / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        if home.exists():
            raise FileExistsError(str(home))
        making.rename(home)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _texts(folder: Traversable, place: PurePosixPath) -> list[tuple[PurePosixPath, str]]:
    found: list[tuple[PurePosixPath, str]] = []
    for each in sorted(folder.iterdir(), key=lambda item: item.name):
        if each.is_dir():
            found += _texts(each, place / each.name)
        elif each.name.endswith(SUFFIX):
            found.append((place / each.name.removesuffix(SUFFIX), each.read_text(encoding="utf-8")))
    return found


def _words(name: str, service: Service, path: str, health: str) -> dict[str, str]:
    words = service.words
    if service.kind == "command":
        # It is started from elsewhere, and its own words may be relative.
        words = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', str(service.folder), *words)
    origin = split(service.url)[0] if service.url else None
    shown = {
        "URL": f"{origin.scheme}://{origin.authority}" if origin else "",
        "PATH": split(service.url)[1] if service.url and path == "/" else path,
        "BACKEND": {"command": "process", "folder": "docker"}.get(service.kind, "auto"),
    }
    hosts = [origin.host] if origin and not is_loopback(origin.host) else []
    class_name = "".join(part.capitalize() for part in name.split("_"))
    text = {
        "NAME": name,
        "CLASS": f"{class_name}Parameters",
        "ALLOWED": f"({json.dumps(hosts[0])},)" if hosts else "()",
        "ALLOWED_NOTEBOOK": json.dumps(hosts),
        "COMMAND": toml_list(words),
        "HEALTH": json.dumps(health),
        **{key: json.dumps(value, ensure_ascii=False) for key, value in shown.items()},
    }
    # Within the text of a notebook, which is JSON itself.
    return text | {f"{key}_IN_JSON": json.dumps(text[key])[1:-1] for key in (*shown, *IN_NOTEBOOK)}


def _filled(text: str, words: Mapping[str, str]) -> str:
    for key, value in words.items():
        text = text.replace(f"@{key}@", value)
    return text
