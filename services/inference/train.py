"""Train the model on scikit-learn's breast-cancer data and write it for every runtime."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import joblib
import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

TREES = 50


def train(folder: Path) -> None:
    """Write model.joblib, model.onnx and example.json into a folder."""
    data = load_breast_cancer()
    features = data.data.astype(np.float32)
    model = RandomForestClassifier(n_estimators=TREES, random_state=0, n_jobs=1)
    model.fit(features, data.target)
    folder.mkdir(parents=True, exist_ok=True)
    joblib.dump(model, folder / "model.joblib")
    onnx = to_onnx(model, features[:1], options={"zipmap": False}, target_opset=17)
    (folder / "model.onnx").write_bytes(onnx.SerializeToString())
    (folder / "example.json").write_text(json.dumps({"features": data.data[0].tolist()}) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    train(parser.parse_args().into)
