"""The main job, as ``make lab`` starts it."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from perflab import systems
from perflab.cli import app
from perflab.cli.actions.lab import main_job_values, way_out
from perflab.errors import ParameterError
from perflab.figures import GENERAL_VIEWS, View
from perflab.parameters import parse_assignments
from tests.support.synthetic import write_run
from tests.trials.executed import check_executed

SMALL = ["-p", "blocks=1", "-p", "fresh_blocks=0", "-p", "requests=60",
         "-p", "warmup_requests=10", "-p", "start_requests=20", "-p", "concurrency=5",
         "-p", "workers=1", "-p", "pool_size=4"]  # fmt: skip


@pytest.mark.slow
def test_the_main_job_answers_its_questions_and_names_one_page(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    only = systems.experiment("synchronous_commit")
    monkeypatch.setattr(systems, "experiments", lambda: [only])
    result = CliRunner().invoke(app, ["lab", "--backend", "process", *SMALL])
    assert result.exit_code == 0, result.output
    assert "1 experiments, 3 trials" not in result.output
    assert "1 experiment, 3 trials in all" in result.output
    end = result.output.partition("\n\n")[2].splitlines()
    # One block has no interval.
    assert end[0].startswith("  synchronous_commit=off faster?  not ")
    (trust,) = (line for line in end if "process backend" in line)
    assert "of 3 trials count" in trust
    assert len(end) <= 25
    page = Path(next(line for line in end if line.startswith("Look at")).split(maxsplit=2)[2])
    text = page.read_text()
    assert "synchronous_commit=off faster?" in text
    addresses = [page.parent / unquote(name) for name in re.findall(r'(?:href|src)="(.*?)"', text)]
    # Where a trial of the one block is refused, there is no effect to draw.
    drawn = {".svg"} if "3 of 3 trials count" in trust else set()
    assert {".ipynb", ".md", ".csv"} | drawn <= {path.suffix for path in addresses}
    assert all(path.exists() for path in addresses)
    check_executed(
        "synchronous_commit", next(path for path in addresses if path.suffix == ".ipynb")
    )
    assert "WARNING" not in capfd.readouterr().err


def test_the_line_that_decides_a_question_asks_for_what_was_run_with_more_blocks(
    tmp_path: Path,
) -> None:
    chosen = systems.experiment("sync_vs_async")
    bounds = {"blocks": "until_decided", "most_blocks": 40}
    asked = chosen.plan(
        chosen.check({**(chosen.main_job or {}), "concurrency": 7, **bounds})
    ).parameters
    run = write_run(tmp_path, blocks=2)
    run.record = run.record.model_copy(
        update={"experiment": chosen.name, "parameters": dict(asked), "backend": "docker"}
    )
    words = shlex.split(way_out(run, 14).removeprefix("-> ").partition("   (about ")[0])
    typed = parse_assignments(after for before, after in pairwise(words) if before == "-p")
    again = chosen.check({**typed, "backend": words[words.index("--backend") + 1]})
    kept = {name: asked[name] for name in asked if name not in ("seed", "most_blocks")}
    assert again == chosen.check({**kept, "backend": "docker", "blocks": 14})


def test_parameters_of_the_main_job_go_where_they_belong() -> None:
    chosen = [systems.experiment(name) for name in ("synchronous_commit", "latency_cpu")]
    values = main_job_values(chosen, {"blocks": 4, "users": 30, "workers": 2})
    usual = systems.experiment("synchronous_commit").main_job or {}
    assert values["synchronous_commit"] == {**usual, "blocks": 4, "workers": 2}
    short = dict(systems.experiment("latency_cpu").main_job or {})
    assert values["latency_cpu"] == {**short, "blocks": 4, "users": 30}


def test_each_question_of_the_main_job_has_six_starts_or_more() -> None:
    for experiment in systems.experiments():
        if experiment.main_job is not None:
            parameters = experiment.check(experiment.main_job)
            blocks_of_a_start = parameters.model_dump().get("fresh_blocks") or 1
            assert experiment.plan(parameters).blocks // blocks_of_a_start >= 6, experiment.name


def test_the_pictures_of_answers_are_views_of_their_system() -> None:
    for experiment in systems.experiments():
        views = systems.declared(experiment.system, "views", "VIEWS", View, GENERAL_VIEWS)
        assert {*experiment.pictures} <= {view.name for view in views}, experiment.name
    first = next(each for each in systems.experiments() if each.main_job is not None)
    assert first.pictures[0] == "delivery_cpu", "the first card shows latency against CPU"


def test_a_parameter_that_no_experiment_of_the_main_job_has_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"'worker'.*did you mean 'workers'"):
        main_job_values([systems.experiment("synchronous_commit")], {"worker": 2})
