"""A view: a tidy table of a run, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from perflab.recordings import Run


@dataclass(frozen=True)
class View:
    """One kind of figure: its name (of files, too), its title, its table, and how it is drawn."""

    name: str
    title: str
    table: Callable[[Run], pd.DataFrame]
    draw: Callable[[Run], Figure | None]
