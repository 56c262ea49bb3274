"""scikit-learn itself, on one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from app.forest import grown


def load(_artifacts: Path) -> Callable[[Sequence[float]], tuple[int, float]]:
    """Grow the forest and return its prediction; no file is read."""
    model = grown()

    def predict(features: Sequence[float]) -> tuple[int, float]:
        row = np.asarray(features, dtype=np.float32).reshape(1, -1)
        probabilities = model.predict_proba(row)[0]
        label = int(probabilities.argmax())
        return label, float(probabilities[label])

    return predict
