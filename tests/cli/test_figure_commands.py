"""``perflab export --figures`` and ``--verify`` as their users type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Tell
from tests.support.synthetic import write_run

# Drawing whole runs takes seconds.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    write_run(root, run_id="first", blocks=2, requests=60)
    return root


def test_figures_have_the_names_of_their_views_and_verify_has_a_status_of_its_own(
    perflab: Tell, runs, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--to", "doc/img", "--format", "svg,pdf")
    text, _ = perflab(runs, "export", "first", "--figures", "--views", "throughput,effect", *words)
    names = ["effect", "throughput"]
    files = [f"{name}{end}" for name in names for end in (".csv", ".pdf", ".svg")]
    assert sorted(path.name for path in Path("doc/img").iterdir()) == files
    assert "n = 2 valid trials per treatment" in text
    text, _ = perflab(runs, "export", "--verify", "doc")
    assert "4 checked: 4 as drawn" in text
    table = Path("doc/img/throughput.csv")
    table.write_text(table.read_text() + "\n")
    text, _ = perflab(runs, "export", "--verify", "doc", code=3)
    assert "2 stale" in text
    perflab(runs, "export", "--verify", "nowhere", code=2)


def test_what_cannot_be_is_refused_before_anything_is_written(
    perflab: Tell, runs, tmp_path
) -> None:
    words = ("--views", "throuput", "--format", "jpg", "--to", str(tmp_path / "x"))
    _, errors = perflab(runs, "export", "first", "--figures", *words, code=2)
    for message in ("did you mean 'throughput'", "there are: svg, png, pdf"):
        assert message in " ".join(errors.split())
    assert not (tmp_path / "x").exists()
