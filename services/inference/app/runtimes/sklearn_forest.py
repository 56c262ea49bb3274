"""scikit-learn itself, on one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import joblib
import numpy as np


def load(artifacts: Path) -> Callable[[Sequence[float]], tuple[int, float]]:
    """Open the model and return its prediction."""
    model = joblib.load(artifacts / "model.joblib")

    def predict(features: Sequence[float]) -> tuple[int, float]:
        row = np.asarray(features, dtype=np.float32).reshape(1, -1)
        probabilities = model.predict_proba(row)[0]
        label = int(probabilities.argmax())
        return label, float(probabilities[label])

    return predict
