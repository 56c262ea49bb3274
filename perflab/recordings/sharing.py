"""A run's words for documents and figures: names stand in the places of this machine's folders.

The record itself keeps absolute paths, by which a run is resumed.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perflab.paths import project_root, state_dir
from perflab.recordings.schema import RunRecord

# The place of a variant, in the parameters of a run as JSON.
_PLACE = re.compile(r"=(?:git|dockerfile):(/[^@\"]+)")
# Places of people, and temporary ones, on any machine that may have measured the run; paths that a
# service is asked for are none.
_OF_REQUESTS = ("GET ", "PUT ", "POST ", "HEAD ", "PATCH ", "DELETE ", "OPTIONS ", '"path": "')
_ELSEWHERE = re.compile(
    "".join(f"(?<!{before})" for before in _OF_REQUESTS)
    + r"(?<![\w./~>-])/(?:home|Users|root|tmp|var|srv|opt|mnt|media|private|usr/local)"
    r"(?:/[^\s/'\"`|,;:()<>]+)*/([^\s/'\"`|,;:()<>@]+)"
)


def folder_of(record: RunRecord) -> str:
    """Return the name of the folder in which a run's own services lie; empty without one."""
    return Path(str(record.parameters.get("folder") or "")).name


def without_paths(record: RunRecord, text: str, folder: str = "") -> str:
    """Return a text with names in the places of folders; ``folder`` stands for the run's own."""
    for place, name in sorted(_places(record, folder), key=lambda pair: -len(pair[0])):
        whole = rf"(?<![\w./~-]){re.escape(place)}(?![\w-])"
        text = re.sub(whole, name.replace("\\", r"\\"), text)
    return _ELSEWHERE.sub(lambda match: match[1], text)


def shared_parameters(record: RunRecord, folder: str = "") -> dict[str, Any]:
    """Return the parameters of a run without paths of the machine."""
    shared: dict[str, Any] = json.loads(without_paths(record, _parameters_as_json(record), folder))
    return shared


def _parameters_as_json(record: RunRecord) -> str:
    return json.dumps(dict(record.parameters), default=str, ensure_ascii=False)


def _places(record: RunRecord, folder: str) -> Iterator[tuple[str, str]]:
    """Yield the folders that this machine or the run knows, with their names."""
    own = str(record.parameters.get("folder") or "")
    known = [
        *_PLACE.findall(_parameters_as_json(record)),
        str(record.environment.get("prefix") or ""), str(project_root()), str(state_dir()),
        str(Path.cwd()), str(Path.home()), tempfile.gettempdir(),
    ]  # fmt: skip
    for place in dict.fromkeys(known):
        if len(Path(place).parts) > 1 and place != own:
            yield place, "~" if place == str(Path.home()) else Path(place).name
    if len(Path(own).parts) > 1:
        yield own, folder or Path(own).name
