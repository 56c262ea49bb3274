"""Inference runtimes; each function imports its library, so that a worker has only its own."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path

from app import compiling

# A loaded model: the features of one row to its label and that label's probability.
Predict = Callable[[Sequence[float]], tuple[int, float]]
FEATURES, CLASSES = 30, 2


def load(name: str, artifacts: Path) -> Predict:
    """Return the chosen runtime's model, on one thread; raises ValueError if it cannot run here."""
    return {"sklearn": sklearn_forest, "onnx": onnx_session, "compiled": compiled}[name](artifacts)


def sklearn_forest(_artifacts: Path) -> Predict:
    """Grow the forest anew; no file is read."""
    import numpy as np

    from app.forest import grown

    model = grown()

    def predict(features: Sequence[float]) -> tuple[int, float]:
        row = np.asarray(features, dtype=np.float32).reshape(1, -1)
        probabilities = model.predict_proba(row)[0]
        label = int(probabilities.argmax())
        return label, float(probabilities[label])

    return predict


def onnx_session(artifacts: Path) -> Predict:
    """Open the model in ONNX Runtime; parallelism is the workers' business."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path, providers = str(artifacts / "model.onnx"), ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(path, options, providers=providers)
    entry = session.get_inputs()[0].name

    def predict(features: Sequence[float]) -> tuple[int, float]:
        row = np.asarray(features, dtype=np.float32).reshape(1, -1)
        labels, probabilities = session.run(None, {entry: row})
        label = int(labels[0])
        return label, float(probabilities[0][label])

    return predict


def compiled(artifacts: Path) -> Predict:
    """Load the forest that was compiled from C++."""
    path = artifacts / compiling.LIBRARY
    if not path.exists():
        why = compiling.facts(artifacts).get("trouble", "it was not compiled")
        raise ValueError(
            f"INFERENCE_RUNTIME = 'compiled' cannot run: {why}. Install a C++ compiler "
            f"(apt-get install g++) and remove {artifacts}, or choose other runtimes or the "
            "backend docker"
        )
    run = ctypes.CDLL(str(path)).predict
    run.restype = None
    row_type, answer_type = ctypes.c_float * FEATURES, ctypes.c_double * CLASSES

    def predict(features: Sequence[float]) -> tuple[int, float]:
        answer = answer_type()
        run(row_type(*features), answer)
        probabilities = list(answer)
        probability = max(probabilities)
        # Of equal ones the first, as argmax takes it.
        return probabilities.index(probability), probability

    return predict
