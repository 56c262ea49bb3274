"""A broken module of an experiment is named with its fault, and the others are still found."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perflab import systems
from perflab.cli.experiments import command
from perflab.errors import ExperimentError, ParameterError
from perflab.systems import experiment

COPY = "from perflab.systems.inference.experiments.synchronous_commit import EXPERIMENT\n"
WITHOUT_SOURCE = """
from dataclasses import replace
from perflab.systems.inference.experiments.synchronous_commit import EXPERIMENT as MODEL
from perflab.recordings import Contrast

def contrasts(_):
    sides = {"numerator": {"v": "b"}, "denominator": {"v": "a"}}
    return [Contrast(name="a", claim="b", response="c", published_ratio=2, **sides)]

EXPERIMENT = replace(MODEL, name="unsourced", contrasts=contrasts)
"""
BROKEN = {
    "empty": ("", "has no EXPERIMENT; end it with EXPERIMENT = Experiment(...)"),
    "raises": ("1 / 0", "ZeroDivisionError when it is imported: division by zero (line 1"),
    "exits": ("import sys; sys.exit('gone')", "SystemExit when it is imported: gone"),
    "unread": ("def (", "SyntaxError when it is imported: invalid syntax (line 1"),
    "number": ("EXPERIMENT = 3", "its EXPERIMENT is a int, not an Experiment"),
    "twin": (COPY, "its EXPERIMENT is named 'synchronous_commit'; name it like the file, 'twin'"),
    "typeless": (
        COPY + "from dataclasses import replace\n"
        "EXPERIMENT = replace(EXPERIMENT, name='typeless', parameters=dict)",
        "its parameters are no class derived from RunParameters",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a temporary folder whose modules count as experiments, too."""
    home = tmp_path / "own_experiments"
    monkeypatch.setattr(systems, "HOMES", {**systems.HOMES, home: home.name})
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    experiments = home / "foreign" / "experiments"
    experiments.mkdir(parents=True)
    for package in (experiments.parent, experiments):
        (package / "__init__.py").touch()
    yield experiments
    for name in set(sys.modules) - before:
        if name.startswith(("perflab.systems.", "own_experiments")):
            del sys.modules[name]
    importlib.invalidate_caches()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_module_that_is_named_gives_the_reason(folder: Path, name: str) -> None:
    text, words = BROKEN[name]
    (folder / f"{name}.py").write_text(text)
    with pytest.raises(ExperimentError) as caught:
        experiment(name)
    assert str(folder / f"{name}.py") in str(caught.value)
    assert words in str(caught.value)


def test_the_others_are_listed_and_every_broken_one_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, (text, _) in BROKEN.items():
        (folder / f"{name}.py").write_text(text)
    command()
    output = capsys.readouterr().out
    assert re.search("synchronous_commit +How much throughput", output)
    # A path may be broken over two lines.
    told = "".join(output.split())
    assert all(f"leftout:{folder / name}.py:" in told for name in BROKEN)


@pytest.mark.parametrize("fault", ["1 / 0", "def ("])
def test_a_system_whose_own_package_is_broken_leaves_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    (folder / "in_vain.py").write_text(COPY)
    package = folder.parent / "__init__.py"
    package.write_text(fault)
    command()
    output = capsys.readouterr().out
    assert re.search("synchronous_commit +How much throughput", output)
    told = "".join(output.split())
    assert f"leftout:{folder / 'in_vain.py'}:" in told
    assert f"(line1of{package})" in told
    assert systems.ready_stacks()


def test_a_claim_without_a_source_is_refused_with_its_file(folder: Path) -> None:
    (folder / "unsourced.py").write_text(WITHOUT_SOURCE)
    with pytest.raises(ExperimentError, match=r"unsourced\.py\): Contrast: .*needs a source"):
        experiment("unsourced").plan(experiment("unsourced").check({}))


def test_a_claim_about_an_undeclared_response_is_refused() -> None:
    chosen = experiment("synchronous_commit")
    (claim, *_) = chosen.plan(chosen.check({})).contrasts
    wrong = replace(
        chosen, contrasts=lambda _: [claim.model_copy(update={"response": "throughput_rp"})]
    )
    with pytest.raises(ParameterError) as caught:
        wrong.plan(wrong.check({}))
    assert "'throughput_rp', which its system does not declare" in " ".join(
        str(caught.value).split()
    )
    assert "did you mean 'throughput_rps'" in str(caught.value)
