"""The forest as compiled C++, called through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path

from app import building

FEATURES, CLASSES = 30, 2


def load(artifacts: Path) -> Callable[[Sequence[float]], tuple[int, float]]:
    """Load the library and return its prediction.

    Raises
    ------
    ValueError
        It was not compiled; the message says why, and what to do.
    """
    path = artifacts / building.LIBRARY
    if not path.exists():
        why = building.facts(artifacts).get("trouble", "it was not compiled")
        raise ValueError(
            f"INFERENCE_RUNTIME = 'compiled' cannot be had: {why}. Install a C++ compiler "
            f"(apt-get install g++) and remove {artifacts}, or take other runtimes, or the backend "
            "docker"
        )
    run = ctypes.CDLL(str(path)).predict
    run.restype = None
    row_type, answer_type = ctypes.c_float * FEATURES, ctypes.c_double * CLASSES

    def predict(features: Sequence[float]) -> tuple[int, float]:
        found = answer_type()
        run(row_type(*features), found)
        probabilities = list(found)
        probability = max(probabilities)
        # Of equal ones the first, as argmax takes it.
        return probabilities.index(probability), probability

    return predict
