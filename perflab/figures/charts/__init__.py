"""Charts declared as data: rows or planes, their axes, and layers that draw a table's rows."""

from __future__ import annotations

from perflab.figures.charts.axes import Axis
from perflab.figures.charts.layers import (
    TRIAL,
    Bands,
    Intervals,
    Layer,
    Lines,
    Marks,
    Points,
    Published,
    Rules,
    Texts,
    Typical,
)
from perflab.figures.charts.planes import Plane, Planes
from perflab.figures.charts.rows import RowChart
from perflab.figures.charts.stacks import Bars, Stack

__all__ = [
    "TRIAL", "Axis", "Bands", "Bars", "Intervals", "Layer", "Lines", "Marks", "Plane", "Planes",
    "Points", "Published", "RowChart", "Rules", "Stack", "Texts", "Typical",
]  # fmt: skip
