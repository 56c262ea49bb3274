"""ONNX Runtime, on one thread: parallelism is the workers' business."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnxruntime


def load(artifacts: Path) -> Callable[[Sequence[float]], tuple[int, float]]:
    """Open the model and return its prediction."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(artifacts / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    entry = session.get_inputs()[0].name

    def predict(features: Sequence[float]) -> tuple[int, float]:
        row = np.asarray(features, dtype=np.float32).reshape(1, -1)
        labels, probabilities = session.run(None, {entry: row})
        label = int(labels[0])
        return label, float(probabilities[0][label])

    return predict
