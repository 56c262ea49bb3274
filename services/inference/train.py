"""Write the model for the runtimes that read it from a file: as ONNX, and as compiled C++."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from app import compiling
from app.forest import grown, rows
from skl2onnx import to_onnx
from sklearn.datasets import load_breast_cancer


def train(folder: Path) -> None:
    """Write model.onnx, example.json and the compiled forest into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    model = grown()
    onnx = to_onnx(model, rows()[:1], options={"zipmap": False}, target_opset=17)
    (folder / "model.onnx").write_bytes(onnx.SerializeToString())
    compiling.build(folder, compiling.forest_source(model))
    example = {"features": load_breast_cancer().data[0].tolist()}
    (folder / "example.json").write_text(json.dumps(example) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    train(parser.parse_args().into)
