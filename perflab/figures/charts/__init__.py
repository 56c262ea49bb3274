"""Charts declared as data: rows or planes, their axes, and layers that draw a table's rows."""

from __future__ import annotations

from perflab.figures.charts.axes import Axis
from perflab.figures.charts.layers import (
    Intervals,
    Layer,
    Lines,
    Marks,
    Points,
    Published,
    Rules,
    Typical,
)
from perflab.figures.charts.planes import Plane, Planes
from perflab.figures.charts.rows import RowChart
from perflab.figures.charts.stacks import Bars, Stack
from perflab.figures.origin import TRIAL

__all__ = [
    "TRIAL", "Axis", "Bars", "Intervals", "Layer", "Lines", "Marks", "Plane", "Planes",
    "Points", "Published", "RowChart", "Rules", "Stack", "Typical",
]  # fmt: skip
