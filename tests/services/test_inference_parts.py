"""Parts of the inference service that need no server: its runtimes and its pool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from app import compiling
from app.runtimes import load
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


def test_both_runtimes_and_a_model_that_is_trained_again_agree_on_every_row_of_the_data(
    artifacts: Path, tmp_path: Path
) -> None:
    told = told_inside("inference", PREDICTIONS.format(made=str(artifacts), again=str(tmp_path)))
    assert len(told["onnx"]) == 569
    assert {label for label, _ in told["onnx"]} == {0, 1}
    assert [label for label, _ in told["onnx"]] == [label for label, _ in told["sklearn"]]
    right = [label == true for (label, _), true in zip(told["onnx"], told["true"], strict=True)]
    assert sum(right) / len(right) > 0.98, "the model has learned something"
    assert [one for _, one in told["onnx"]] == pytest.approx(
        [one for _, one in told["sklearn"]], abs=1e-5
    )
    assert told["again"] == told["onnx"]
    assert len(json.loads((tmp_path / "example.json").read_text())["features"]) == 30


@pytest.mark.parametrize(("runtime", "loaded"), [("onnx", "onnxruntime"), ("sklearn", "sklearn")])
def test_a_worker_imports_only_its_own_runtime(artifacts: Path, runtime: str, loaded: str) -> None:
    script = IMPORTED.format(name=runtime, folder=str(artifacts))
    assert told_inside("inference", script) == [loaded]


@pytest.mark.parametrize(
    ("workers", "pool_size", "minconn", "kept", "most"),
    [
        (4, 50, "max", [13, 13, 12, 12], [13, 13, 12, 12]),
        (4, 50, "1", [1, 1, 1, 1], [13, 13, 12, 12]),
        (3, 3, "max", [1, 1, 1], [1, 1, 1]),
    ],
)
def test_the_pool_is_shared_out_among_the_workers(
    workers: int, pool_size: int, minconn: Literal["max", "1"], kept: list[int], most: list[int]
) -> None:
    settings = Settings(workers=workers, pool_size=pool_size, pool_minconn=minconn)
    pools = [settings.pool_of(place) for place in range(workers)]
    assert [*zip(*pools, strict=True)] == [(*kept,), (*most,)]


ROWS = 10_000
# Rows between and beyond those of the data, and rows that lie on thresholds of the trees.
COMPARED = """
import json, pathlib
import numpy as np
from app import runtimes
from app.forest import grown, rows
random = np.random.default_rng(12)
low, high = rows().min(axis=0), rows().max(axis=0)
asked = random.uniform(low - (high - low) / 2, high + (high - low) / 2, ({rows}, low.size))
asked = asked.astype(np.float32)
model = grown()
for tree in (estimator.tree_ for estimator in model.estimators_):
    for feature, threshold in zip(tree.feature, tree.threshold):
        if feature >= 0:
            asked[random.integers(len(asked)), feature] = threshold
expected = model.predict_proba(asked)
predict = runtimes.load("compiled", pathlib.Path({folder!r}))
predicted = [predict(row) for row in asked.tolist()]
labels = expected.argmax(axis=1)
print(json.dumps({{
    "rows": len(predicted),
    "labels": len(set(labels.tolist())),
    "other_labels": int(sum(label != mine for (mine, _), label in zip(predicted, labels))),
    "other_probabilities": int(sum(
        share != row[label] for (_, share), row, label in zip(predicted, expected, labels)
    )),
}}))
"""


def test_it_predicts_what_scikit_learn_does_to_the_last_bit(artifacts: Path) -> None:
    if not compiling.compiler():
        assert "no C++ compiler" in str(compiling.facts(artifacts)["trouble"])
        return
    told: dict[str, Any] = told_inside(
        "inference", COMPARED.format(rows=ROWS, folder=str(artifacts))
    )
    assert told == {"rows": ROWS, "labels": 2, "other_labels": 0, "other_probabilities": 0}
    facts = compiling.facts(artifacts)
    assert ("-O2" in str(facts["flags"]), float(str(facts["compile_s"])) > 0) == (True, True)


def test_without_a_compiler_a_sentence_says_so_and_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    compiling.build(tmp_path, "")
    with pytest.raises(ValueError, match=r"no C\+\+ compiler \(c\+\+, g\+\+, clang\+\+\)") as told:
        load("compiled", tmp_path)
    assert f"Install a C++ compiler (apt-get install g++) and remove {tmp_path}" in str(told.value)
