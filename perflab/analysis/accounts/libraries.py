"""In which library the CPU of a service's own functions is spent, by the call chains below them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

import pandas as pd

from perflab.analysis.accounts.entries import Entry

_FRAME = re.compile(r"(?P<name>.+?)(?:\.<.*)? \((?P<file>.*)\)")
# A library that makes less of a function's difference is not named.
LEAST_PART = 0.5

Samples = Mapping[str, Mapping[str, Counter[str]]]


def samples_by_library(calls: pd.DataFrame, functions: Iterable[str]) -> Samples:
    """Return samples by treatment, own function and library of the innermost frame ('': none).

    ``calls`` has treatment, chain and samples; ``functions`` are all that have samples, written
    ``name (file)``. The innermost of them in a chain has the chain's samples.
    """
    own = {frame: name for name in functions if (frame := _frame(name))}
    found: dict[str, dict[str, Counter[str]]] = {}
    for side, chain, samples in zip(
        *(calls.get(column, ()) for column in ("treatment", "chain", "samples")), strict=True
    ):
        frames = chain.split(";")
        for place, text in reversed([*enumerate(frames, 1)]):
            if function := own.get(_frame(text)):
                below = place < len(frames)
                library = _top(frames[-1]) if below else ""
                found.setdefault(side, {}).setdefault(function, Counter())[library] += samples
                break
    return found


def library_of(samples: Samples, function: str, cpu: Entry, new: str, old: str) -> str:
    """Return the library that makes most of the difference of a function's CPU; or nothing."""
    changes: dict[str, float] = {}
    for side, ms in ((new, cpu.new), (old, -cpu.old)):
        of_function = samples.get(side, {}).get(function, Counter())
        for library, count in of_function.items():
            changes[library] = changes.get(library, 0.0) + ms * count / of_function.total()
    parts = {library: ms / cpu.change for library, ms in changes.items()}
    largest = max(parts, key=parts.__getitem__, default="")
    return largest if largest and parts[largest] >= LEAST_PART else ""


def _frame(text: str) -> tuple[str, str]:
    """Return the name of a frame's function, and of its file without folders."""
    match = _FRAME.fullmatch(text)
    return (match["name"], PurePosixPath(match["file"]).name) if match else ("", "")


def _top(frame: str) -> str:
    """Return the package, or the module, of an installed frame."""
    match = _FRAME.fullmatch(frame)
    parts = PurePosixPath(match["file"]).parts if match else ()
    return parts[0].removesuffix(".py") if parts else ""
