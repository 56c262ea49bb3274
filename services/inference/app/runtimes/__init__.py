"""Inference runtimes: one module each, loaded only when chosen.

A module offers ``load(artifacts) -> Predict``.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

RUNTIMES = {
    "sklearn": "app.runtimes.sklearn_forest",
    "onnx": "app.runtimes.onnx_session",
    "compiled": "app.runtimes.compiled_forest",
}


class Predict(Protocol):
    """A loaded model: features to label and that label's probability."""

    def __call__(self, features: Sequence[float], /) -> tuple[int, float]:
        """Predict one row."""


def load(name: str, artifacts: Path) -> Predict:
    """Return the chosen runtime's model.

    Raises
    ------
    ValueError
        It cannot run here.
    """
    predict: Predict = importlib.import_module(RUNTIMES[name]).load(artifacts)
    return predict
