"""The model as compiled C++: equal to scikit-learn to the last bit, or a clear word why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from app import compiling
from app.runtimes import load
from running import artifacts_of, told_inside

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


def test_it_predicts_what_scikit_learn_does_to_the_last_bit(own_places: Path) -> None:  # noqa: ARG001
    artifacts = artifacts_of("inference")
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
