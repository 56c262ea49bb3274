"""The trials of several runs as one tidy table, and a history from it by pandas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import perflab
from perflab.paths import project_root
from perflab.recordings import RunWriter
from tests.support.planted_trial import Planted
from tests.support.synthetic import ON_AND_OFF, write_run

DAYS = 4


def add_run(root: Path, day: int, ratio: float, run_id: str, **changes: object) -> None:
    faster = Planted(ON_AND_OFF[1].levels, ratio, ON_AND_OFF[1].label)
    run = write_run(
        root,
        treatments=(ON_AND_OFF[0], faster),
        blocks=2,
        requests=60,
        seed=day,
        database=False,
        run_id=run_id,
        noise=0.0,
        block_noise=0.0,
        parameters={"requests": 60, "seed": day, "rungs": [1, 2]},
    )
    RunWriter.reopen(run.path).update(
        created_at=f"2026-03-{day + 1:02d}T03:04:05Z",
        code={"commit": f"{day:040x}", "dirty": False, "fingerprint": ""},
        **changes,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs of four days, with a smaller effect after the second; one run on another machine."""
    root = tmp_path_factory.mktemp("made") / "runs"
    add_run(root, 0, 1.1, "elsewhere", environment={"machine": {"cpu": "another", "cores": 8}})
    for day in range(DAYS):
        add_run(root, day, 1.6 if day < 2 else 1.2, f"day{day}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFLAB_RUNS", str(root))
        yield


@pytest.mark.usefixtures("runs")
def test_every_trial_of_every_run_has_a_row_with_the_run_it_is_of() -> None:
    table = perflab.trials_of()
    all_runs = perflab.runs()
    assert list(table["run"].unique()) == [run.run_id for run in all_runs]
    for run in all_runs:
        actual, expected = table[table["run"] == run.run_id], run.trials()
        for name in ("trial_id", "state", "throughput_rps", "mean_ms", "block", "superseded"):
            pd.testing.assert_series_equal(
                actual[name].reset_index(drop=True), expected[name], check_dtype=False
            )
    day = table[table["run"] == "day2"].iloc[0]
    assert (day["commit"], day["backend"], day["machine"]) == (
        f"{2:040x}", "process", "cpu: synthetic, cores: 2",
    )  # fmt: skip
    assert day["created_at"] == pd.Timestamp("2026-03-03T03:04:05Z")


@pytest.mark.usefixtures("runs")
def test_the_lines_of_the_page_draw_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (project_root() / "docs" / "how-to" / "history.md").read_text()
    (lines,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    mpl.use("agg")
    namespace: dict[str, pd.DataFrame] = {}
    exec(compile(lines, "history.md", "exec"), namespace)
    assert list(namespace["history"]["count"]) == [2] * DAYS
    np.testing.assert_allclose(
        np.exp(namespace["history"]["mean"]), [1.6, 1.6, 1.2, 1.2], rtol=0.02
    )
    assert (tmp_path / "history.svg").exists()
