"""Files that were edited, are stale or lost their table are found; files as written are not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.errors import ParameterError
from perflab.figures import View, save_view
from perflab.figures.export import stamped, table_digest, unstamped
from perflab.paths import project_root
from perflab.recordings import Run
from perflab.reports.figures import save_all, views_of
from perflab.reports.regions import filled
from perflab.reports.verifying import NOT_HERE, verify
from tests.figures.conftest import VIEWS

REBUILD = """
import sys, time
from pathlib import Path
from perflab.recordings import Run
from perflab.reports.figures import save_all
# On another day: nothing in a file may depend on the clock.
time.time = lambda now=time.time: now() + 86400 * 40
save_all(Run(Path(sys.argv[1])), Path(sys.argv[2]))
"""


def own_view(run: Run, name: str) -> View:
    """Return a view as the run's system declares it, with published values."""
    return next(view for view in views_of(run) if view.name == name)


@pytest.fixture(scope="module")
def written(normal, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    save_view(own_view(normal, "throughput"), normal, folder, ["svg", "png", "pdf"])
    return folder


@pytest.fixture
def saved(written, tmp_path, monkeypatch) -> Path:
    """Return a folder with a figure and its table, but without its run."""
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path / "none"))
    return Path(shutil.copytree(written, tmp_path / "img"))


@pytest.fixture
def at_home(saved, normal, monkeypatch) -> Path:
    """Return the same folder, with the run."""
    monkeypatch.setenv("PERFLAB_RUNS", str(normal.path.parent))
    return saved


def findings(folder: Path) -> dict[str, str]:
    return {file.path.name: file.state for file in verify([folder]) if file.finding}


@pytest.mark.slow
def test_another_process_on_another_day_rebuilds_every_picture(normal: Run, tmp_path) -> None:
    save_all(normal, tmp_path / "here")
    environment = {**os.environ, "PYTHONHASHSEED": "11", "TZ": "Asia/Tokyo", "MPLBACKEND": "svg"}
    subprocess.run(
        [sys.executable, "-c", REBUILD, str(normal.path), str(tmp_path / "there")],
        check=True, env=environment, cwd=project_root(),
    )  # fmt: skip
    here = {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()}
    assert len(here) == 3 * len(VIEWS["normal"])
    for name, content in here.items():
        assert (tmp_path / "there" / name).read_bytes() == content, name


def test_files_that_were_just_saved_are_as_drawn(at_home, normal) -> None:
    save_view(own_view(normal, "effect"), normal, at_home)
    files = verify([at_home])
    assert {(file.state, file.reason) for file in files} == {("as drawn", "")}
    assert len(files) == 5


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_one_changed_byte_anywhere_is_found(saved, suffix) -> None:
    path = saved / f"throughput.{suffix}"
    whole = path.read_bytes()
    for place in [*range(0, len(whole), len(whole) // 40), *range(len(whole) - 200, len(whole), 7)]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert findings(saved) == {path.name: "edited"}, place
    for other in (whole[:-1], whole + b"\n", unstamped(whole, suffix)):
        path.write_bytes(other)
        assert findings(saved) == {path.name: "edited"}


def test_a_table_changed_beside_its_figure_is_found(saved) -> None:
    table = saved / "throughput.csv"
    table.write_text(table.read_text().replace("3", "4", 1))
    assert findings(saved) == {f"throughput.{suffix}": "stale" for suffix in ("svg", "png", "pdf")}


def test_a_figure_that_its_run_would_not_give_is_stale(at_home) -> None:
    saved = at_home
    plain = unstamped((saved / "throughput.svg").read_bytes(), "svg")
    table = (saved / "throughput.csv").read_bytes()
    other = plain.replace(b"stroke-width: 2.2", b"stroke-width: 2.3")
    assert other != plain
    (saved / "throughput.svg").write_bytes(stamped(other, "svg", table_digest(table)))
    assert findings(saved) == {"throughput.svg": "stale"}


def test_a_figure_without_its_run_or_its_table_and_an_image_of_somebody_else_are_told(
    saved,
) -> None:
    files = verify([saved])
    assert {(file.state, file.reason) for file in files} == {("not edited", NOT_HERE)}
    (saved / "throughput.csv").unlink()
    (saved / "logo.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    assert set(findings(saved).values()) == {"orphaned"}
    states = {file.path.name: file.state for file in verify([saved])}
    assert states["logo.svg"] == "not the lab's"


def test_a_place_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(ParameterError, match="nowhere"):
        verify([tmp_path / "nowhere"])


def test_every_committed_figure_is_as_it_was_written() -> None:
    root = project_root()
    places = [root / "figures" / "readme", root / "figures" / "studies", root / "docs"]
    files = verify([*places, root / "README.md"])
    assert len(files) >= 12
    assert [file for file in files if file.finding] == []


def test_a_region_that_was_edited_by_hand_or_is_damaged_is_found(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(filled("# My\n", {"drivers": "1.25\n"}))
    assert [file.state for file in verify([document])] == ["not edited"]
    document.write_text(document.read_text().replace("# My", "# My own words"))
    assert [file.state for file in verify([document])] == ["not edited"]
    document.write_text(document.read_text().replace("1.25", "1.52"))
    (region,) = verify([document])
    assert (region.state, region.path) == ("edited", document)
    assert "'drivers'" in region.reason
    document.write_text(document.read_text().replace("<!-- perflab:end -->", ""))
    assert [file.state for file in verify([document])] == ["edited"]
