"""In which library the CPU of a service's own function is spent."""

from __future__ import annotations

import pandas as pd

from perflab.analysis.accounts.entries import Entry

# A library that makes less of a function's difference is not named.
LEAST_PART = 0.5


def library_of(functions: pd.DataFrame, function: str, cpu: Entry, new: str, old: str) -> str:
    """Return the library that makes most of the difference of a function's CPU; or nothing.

    ``functions`` has treatment, function, library ('': none) and samples.
    """
    changes: dict[str, float] = {}
    of_function = functions[functions["function"] == function]
    for side, ms in ((new, cpu.new), (old, -cpu.old)):
        samples = of_function[of_function["treatment"] == side].groupby("library")["samples"].sum()
        for library, count in samples.items():
            part = ms * count / samples.sum()
            changes[str(library)] = changes.get(str(library), 0.0) + part
    parts = {library: ms / cpu.change for library, ms in changes.items()}
    largest = max(parts, key=parts.__getitem__, default="")
    return largest if largest and parts[largest] >= LEAST_PART else ""
