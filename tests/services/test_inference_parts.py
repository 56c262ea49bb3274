"""Parts of the inference service that need no server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from app import runtimes
from app.settings import from_environment
from app.timing import Phases
from sklearn.datasets import load_breast_cancer

from perflab.paths import services_dir
from perflab.stacks.process_backend import ProcessBackend
from perflab.stacks.spec import load_service

SOURCE = services_dir() / "inference"


@pytest.fixture(scope="module")
def artifacts(own_places: Path) -> Path:
    identity = ProcessBackend().prepare(load_service("inference"), lambda _: None)
    return own_places / "state" / "artifacts" / f"inference-{identity}"


def test_both_runtimes_agree_on_every_row_of_the_data(artifacts: Path) -> None:
    onnx, sklearn = (_all(name, artifacts) for name in ("onnx", "sklearn"))
    assert len(onnx) == 569
    assert {label for label, _ in onnx} == {0, 1}
    assert [label for label, _ in onnx] == [label for label, _ in sklearn]
    assert [one for _, one in onnx] == pytest.approx([one for _, one in sklearn], abs=1e-5)


def _all(name: str, artifacts: Path) -> list[tuple[int, float]]:
    predict = runtimes.load(name, artifacts)
    return [predict(row) for row in load_breast_cancer().data.tolist()]


def test_the_model_has_learned_something(artifacts: Path) -> None:
    data = load_breast_cancer()
    labels = np.array([label for label, _ in _all("onnx", artifacts)])
    assert (labels == data.target).mean() > 0.98


def test_training_again_gives_the_same_model(artifacts: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(SOURCE / "train.py"), "--into", str(tmp_path)], check=True)
    rows = load_breast_cancer().data.tolist()[::10]
    first, second = (runtimes.load("onnx", folder) for folder in (artifacts, tmp_path))
    assert [first(row) for row in rows] == [second(row) for row in rows]
    assert len(json.loads((tmp_path / "example.json").read_text())["features"]) == 30


def test_an_unknown_runtime_is_refused_by_name(artifacts: Path) -> None:
    with pytest.raises(ValueError, match="'onxn' must be one of sklearn, onnx"):
        runtimes.load("onxn", artifacts)


@pytest.mark.parametrize(("runtime", "loaded"), [("onnx", "onnxruntime"), ("sklearn", "sklearn")])
def test_a_worker_imports_only_its_own_runtime(artifacts: Path, runtime: str, loaded: str) -> None:
    script = (
        "import sys; from pathlib import Path; import app.main; from app import runtimes;"
        f"runtimes.load({runtime!r}, Path({str(artifacts)!r}));"
        "print([name for name in ('onnxruntime', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=SOURCE, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str([loaded])


@pytest.mark.parametrize(
    ("workers", "pool_size", "minconn", "each", "kept"),
    [
        ("4", "50", "max", 12, 12),
        ("4", "50", "1", 12, 1),
        ("4", "50", "20", 12, 12),
        ("8", "4", "max", 1, 1),
        ("1", "50", "max", 50, 50),
    ],
)
def test_the_pool_is_shared_out_among_the_workers(
    workers: str, pool_size: str, minconn: str, each: int, kept: int
) -> None:
    settings = from_environment(
        {
            "ARTIFACTS": "/none",
            "INFERENCE_WORKERS": workers,
            "INFERENCE_POOL_SIZE": pool_size,
            "INFERENCE_POOL_MINCONN": minconn,
        }
    )
    assert settings.pool_per_worker == each
    assert settings.minimum_per_worker == kept


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("INFERENCE_WORKERS", "0"),
        ("INFERENCE_WORKERS", "four"),
        ("INFERENCE_POOL_MINCONN", "min"),
        ("INFERENCE_POOL_MINCONN", "0"),
        ("INFERENCE_TRANSACTION_STYLE", "manual"),
        ("INFERENCE_DRIVER", "psycopg3"),
    ],
)
def test_a_wrong_variable_is_named_with_its_value(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{name} = '{value}' must be"):
        from_environment({"ARTIFACTS": "/none", name: value})


def test_the_password_is_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hush")
    settings = from_environment({"ARTIFACTS": "/none", "DATABASE_PASSWORD_FILE": str(file)})
    assert settings.database_password == "hush"
    assert "hush" not in repr(settings)
    assert "hush" not in json.dumps(settings.public())


def test_phases_are_reported_in_milliseconds_with_three_decimals() -> None:
    phases = Phases()
    phases.durations_ms["execute"] = 1.23456
    header = phases.header().decode()
    assert header.startswith("execute;dur=1.235, app;dur=0.")
    assert len(header.rpartition(".")[2]) == 3
