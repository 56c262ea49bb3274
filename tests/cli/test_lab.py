"""The main job, as ``make lab`` starts it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from perflab import systems
from perflab.cli import app
from perflab.cli.lab import main_job_values
from perflab.errors import ParameterError
from tests.trials.executed import check_executed

SMALL = ["-p", "blocks=1", "-p", "fresh_blocks=0", "-p", "requests=60",
         "-p", "warmup_requests=10", "-p", "concurrency=5", "-p", "workers=1",
         "-p", "pool_size=4"]  # fmt: skip


@pytest.mark.slow
def test_the_main_job_says_what_is_valid_and_where_it_stands(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    only = systems.experiment("synchronous_commit")
    monkeypatch.setattr(systems, "experiments", lambda: [only])
    result = CliRunner().invoke(app, ["lab", "--backend", "process", *SMALL])
    assert result.exit_code == 0, result.output
    assert "1 experiments, 3 trials" not in result.output
    assert "1 experiment, 3 trials in all" in result.output
    assert "of 3 trials valid" in result.output
    paths = [Path(line.strip()) for line in result.output.splitlines() if line.startswith("  /")]
    assert [path.suffix for path in paths] == [".ipynb", ".md"]
    notebook, section = paths
    assert section.parent == notebook.parent
    assert {".svg", ".png", ".csv"} <= {path.suffix for path in section.parent.iterdir()}
    check_executed("synchronous_commit", notebook)
    assert "WARNING" not in capfd.readouterr().err


def test_parameters_of_the_main_job_go_where_they_belong() -> None:
    chosen = [systems.experiment(name) for name in ("synchronous_commit", "latency_cpu")]
    values = main_job_values(chosen, {"blocks": 4, "users": 30, "workers": 2})
    defaults = {"fresh_blocks": 2, "warmup_requests": 1500}
    assert values["synchronous_commit"] == {"blocks": 4, "workers": 2, **defaults}
    short = dict(systems.experiment("latency_cpu").main_job or {})
    assert values["latency_cpu"] == {**short, "blocks": 4, "users": 30}


def test_a_parameter_that_no_experiment_of_the_main_job_has_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"'worker'.*did you mean 'workers'"):
        main_job_values([systems.experiment("synchronous_commit")], {"worker": 2})
