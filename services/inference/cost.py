"""Say what a prediction of the chosen runtime costs in CPU, on the core that this runs on.

Printed as JSON: ``prediction_cpu_us``, of all threads, over a fifth of a second of predictions; and
for the compiled runtime ``compiler``, ``flags`` and ``compile_s`` of its making.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from app import compiling, runtimes

WARM_UP, AT_LEAST_NS = 5, 200_000_000


def prediction_cpu_us(predict: runtimes.Predict, features: list[float]) -> float:
    """Return the CPU time of a prediction, on average over a fifth of a second."""
    for _ in range(WARM_UP):
        predict(features)
    count, began_ns = 0, time.process_time_ns()
    while (spent_ns := time.process_time_ns() - began_ns) < AT_LEAST_NS:
        # Reading the clock costs a fifth of a microsecond.
        for _ in range(10):
            predict(features)
        count += 10
    return spent_ns / count / 1e3


if __name__ == "__main__":
    artifacts, name = Path(os.environ["INFERENCE_ARTIFACTS"]), os.environ["INFERENCE_RUNTIME"]
    example = json.loads((artifacts / "example.json").read_text())["features"]
    facts = compiling.facts(artifacts) if name == "compiled" else {}
    cost_us = prediction_cpu_us(runtimes.load(name, artifacts), example)
    print(json.dumps({**facts, "prediction_cpu_us": cost_us}))
