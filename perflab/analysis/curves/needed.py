"""What a curve is fitted to must be there."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from perflab.errors import AnalysisError


def check_columns(table: pd.DataFrame, rows: str, names: Iterable[str]) -> None:
    """Raise AnalysisError where columns are missing; ``rows`` says what the table's rows are."""
    if absent := [name for name in names if name not in table.columns]:
        raise AnalysisError(f"the {rows} have no column {', '.join(absent)}")
