"""Inference runtimes: one module each, loaded only when chosen.

A module offers ``load(artifacts) -> Predict``. A compiled runtime is one more module and line.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

Predict = Callable[[Sequence[float]], tuple[int, float]]

RUNTIMES = {
    "sklearn": "app.runtimes.sklearn_forest",
    "onnx": "app.runtimes.onnx_session",
}


def load(name: str, artifacts: Path) -> Predict:
    """Return the chosen runtime's function from features to label and probability."""
    predict: Predict = importlib.import_module(RUNTIMES[name]).load(artifacts)
    return predict
