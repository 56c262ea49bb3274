"""Parts of the inference service that need no server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from app.settings import Settings
from running import artifacts_of, told_inside

# By both runtimes, and by the first of them from a model that is trained anew.
PREDICTIONS = """
import json, pathlib, train
from app import runtimes
from sklearn.datasets import load_breast_cancer
data = load_breast_cancer()
made, again = pathlib.Path({made!r}), pathlib.Path({again!r})
train.train(again)
loaded = {{
    "onnx": runtimes.load("onnx", made),
    "sklearn": runtimes.load("sklearn", made),
    "again": runtimes.load("onnx", again),
}}
told = {{name: [predict(row) for row in data.data.tolist()] for name, predict in loaded.items()}}
print(json.dumps(told | {{"true": data.target.tolist()}}))
"""
IMPORTED = """
import json, pathlib, sys, app.main
from app import runtimes
runtimes.load({name!r}, pathlib.Path({folder!r}))
print(json.dumps([name for name in ("onnxruntime", "sklearn") if name in sys.modules]))
"""


@pytest.fixture(scope="module")
def artifacts(own_places: Path) -> Path:  # noqa: ARG001
    return artifacts_of("inference")


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("again")


@pytest.fixture(scope="module")
def told(artifacts: Path, again: Path) -> dict[str, Any]:
    """Label and probability of each row of the data, by runtime, and the true labels."""
    shown = told_inside("inference", PREDICTIONS.format(made=str(artifacts), again=str(again)))
    return dict(shown)


def test_both_runtimes_agree_on_every_row_of_the_data(told: dict[str, Any]) -> None:
    assert len(told["onnx"]) == 569
    assert {label for label, _ in told["onnx"]} == {0, 1}
    assert [label for label, _ in told["onnx"]] == [label for label, _ in told["sklearn"]]
    right = [label == true for (label, _), true in zip(told["onnx"], told["true"], strict=True)]
    assert sum(right) / len(right) > 0.98, "the model has learned something"
    assert [one for _, one in told["onnx"]] == pytest.approx(
        [one for _, one in told["sklearn"]], abs=1e-5
    )


def test_training_again_gives_the_same_model(told: dict[str, Any], again: Path) -> None:
    assert told["again"] == told["onnx"]
    assert len(json.loads((again / "example.json").read_text())["features"]) == 30


@pytest.mark.parametrize(("runtime", "loaded"), [("onnx", "onnxruntime"), ("sklearn", "sklearn")])
def test_a_worker_imports_only_its_own_runtime(artifacts: Path, runtime: str, loaded: str) -> None:
    script = IMPORTED.format(name=runtime, folder=str(artifacts))
    assert told_inside("inference", script) == [loaded]


@pytest.mark.parametrize(
    ("workers", "pool_size", "minconn", "each", "kept"),
    [(4, 50, "max", 12, 12), (4, 50, "1", 12, 1), (8, 4, "max", 1, 1)],
)
def test_the_pool_is_shared_out_among_the_workers(
    workers: int, pool_size: int, minconn: Literal["max", "1"], each: int, kept: int
) -> None:
    settings = Settings(workers=workers, pool_size=pool_size, pool_minconn=minconn)
    assert (settings.pool_per_worker, settings.minimum_per_worker) == (each, kept)
