"""Profiles in speedscope's format, as py-spy writes them.

Source: https://www.speedscope.app/file-format-schema.json. A profile has one list of samples per
thread; each sample is a call chain, the outermost function first, of numbers of frames.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from perflab.errors import ProfilerFailed

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_INSTALLED = re.compile(r".*/(?:site-packages|python3\.\d+)/")
# What is shown of a path outside of Python's own: the file and its package.
_PARTS_SHOWN = 2


def call_chains(text: str) -> pd.DataFrame:
    """Return chain and samples, one row per call chain of all threads, sorted by chain.

    Frames are written ``function (file)`` and joined by semicolons, the outermost first.

    Raises ProfilerFailed where the text is no profile of this kind.
    """
    try:
        whole = json.loads(text)
        names = [_name(frame) for frame in whole["shared"]["frames"]]
        counts = Counter(
            ";".join(names[place] for place in sample)
            for thread in whole["profiles"]
            for sample in thread["samples"]
            if sample
        )
    except (ValueError, LookupError, TypeError) as error:
        raise ProfilerFailed(f"what py-spy left is no speedscope profile: {error!r}") from None
    table = pd.DataFrame(sorted(counts.items()), columns=["chain", "samples"])
    return table.astype({"chain": str, "samples": "int64"})


def _name(frame: Mapping[str, Any]) -> str:
    """Return ``function (file)``; a semicolon would part frames."""
    file = _INSTALLED.sub("", str(frame.get("file") or ""))
    if file.startswith("/"):
        file = "/".join(file.strip("/").split("/")[-_PARTS_SHOWN:])
    return f"{frame['name']} ({file})".replace(";", ":")


def joined(profiles: Iterable[tuple[str, str]], name: str) -> str:
    """Return several profiles as one of that name, which speedscope opens.

    Each of them is what shall stand before the names of its threads, and its text.
    """
    frames: list[Any] = []
    threads: list[Any] = []
    for words, text in profiles:
        own = json.loads(text)
        for thread in own["profiles"]:
            samples = [[len(frames) + place for place in sample] for sample in thread["samples"]]
            threads.append({**thread, "name": f"{words}: {thread['name']}", "samples": samples})
        frames += own["shared"]["frames"]
    whole = {"$schema": SCHEMA, "name": name, "profiles": threads, "shared": {"frames": frames}}
    return json.dumps(whole)
