"""Exported documents: stable names, the author's text kept, whole pages, and refusals."""

from __future__ import annotations

import io
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from perflab.cli import app
from perflab.errors import ExportRefused, ParameterError
from perflab.recordings import Run
from perflab.reports import conversion
from perflab.reports.cells import to_markdown
from perflab.reports.exporting import Content, Destination, export_runs
from perflab.reports.verifying import verify
from tests.support.synthetic import write_run

# Drawing whole runs takes seconds.
pytestmark = pytest.mark.slow
ONE = Content(views=("throughput",))
# All figures of a run on the inference service.
PICTURES = 8


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return write_run(tmp_path_factory.mktemp("runs"), blocks=3, requests=100)


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> Run:
    planted = {"state": "interrupted", "failed": {(0, 0), (0, 1)}, "run_id": "other-1"}
    return write_run(tmp_path_factory.mktemp("others"), blocks=1, requests=100, **planted)


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory) -> Path:
    """A folder with every format of one run."""
    folder = tmp_path_factory.mktemp("documents")
    export_runs([run], Destination(folder), ["md", "html", "pdf", "docx"], Content(full=True))
    return folder


def test_names_are_of_experiment_and_view_and_every_link_is_there(run, exported) -> None:
    names = [path.relative_to(exported).as_posix() for path in exported.rglob("*.*")]
    assert not [name for name in names if run.run_id in name]
    assert {"synchronous_commit.md", "synchronous_commit/throughput.csv"} <= set(names)
    text = (exported / "synchronous_commit.md").read_text()
    assert run.run_id in text
    links = re.findall(r"\]\(<(.*?)>\)", text)
    assert len(links) > 20
    assert all((exported / link).is_file() for link in links)


def test_page_pdf_and_word_hold_their_pictures_and_fetch_nothing(exported) -> None:
    page = (exported / "synchronous_commit.html").read_text()
    sources = re.findall(r'<[^>]*\b(?:src|href)="([^"]*)"', page)
    assert len(sources) == PICTURES
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert (exported / "synchronous_commit.pdf").read_bytes().startswith(b"%PDF")
    with zipfile.ZipFile(exported / "synchronous_commit.docx") as archive:
        assert archive.testzip() is None
        assert (
            len([name for name in archive.namelist() if name.startswith("word/media/")]) == PICTURES
        )


@pytest.mark.promise
def test_an_edited_document_is_found_and_one_of_word_is_named_as_not_checked(
    exported: Path, tmp_path: Path
) -> None:
    def states() -> dict[str, str]:
        return {file.path.suffix: file.state for file in verify([tmp_path])}

    for kind in ("html", "pdf", "docx"):
        shutil.copy(exported / f"synchronous_commit.{kind}", tmp_path)
    assert states() == {".html": "not edited", ".pdf": "not edited", ".docx": "not checked"}
    for kind in ("html", "pdf"):
        document = tmp_path / f"synchronous_commit.{kind}"
        document.write_bytes(document.read_bytes().replace(b"1", b"2", 1))
    assert states() == {".html": "edited", ".pdf": "edited", ".docx": "not checked"}


def test_the_title_of_two_runs_of_one_experiment_stands_once(run: Run, tmp_path: Path) -> None:
    again = write_run(tmp_path / "runs", blocks=3, requests=100, seed=2)
    export_runs([run, again], Destination(tmp_path), ["html"], ONE)
    (page,) = tmp_path.glob("*.html")
    (title,) = re.findall("<title>(.*)</title>", page.read_text())
    assert title == run.record.title


def test_columns_of_word_are_as_wide_as_their_cells_need(tmp_path) -> None:
    text = "| claim | n |\n| --- | --- |\n| asyncpg is faster than psycopg2 | 8 |\n"
    with zipfile.ZipFile(io.BytesIO(conversion.docx(text, tmp_path))) as archive:
        document = archive.read("word/document.xml").decode()
    claim, number = map(int, re.findall(r'<w:gridCol w:w="(\d+)"', document))
    assert 3 < claim / number < 6


def test_a_picture_that_is_taller_than_a_page_is_whole_on_one(tmp_path) -> None:
    for name, size in (("tall.png", (720, 1400)), ("wide.png", (720, 500))):
        Image.new("RGB", size).save(tmp_path / name)
    (tmp_path / "tall.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 518.4 1008"><rect/></svg>'
    )
    text = "![a](<tall.png>)\n\n![b](<wide.png>)\n"
    with zipfile.ZipFile(io.BytesIO(conversion.docx(text, tmp_path))) as archive:
        document = archive.read("word/document.xml").decode()
    # Word's English Metric Units: 914,400 per inch.
    sizes = re.findall(r'<wp:extent cx="(\d+)" cy="(\d+)"', document)
    inches = [(int(width) / 914_400, int(height) / 914_400) for width, height in sizes]
    assert [round(height / width, 1) for width, height in inches] == [1.9, 0.7]
    assert inches[0][1] == pytest.approx(7.6, abs=0.05)
    assert inches[1][0] <= 6.0 + 0.05
    conversion.pdf("![a](<tall.svg>)\n\n![b](<wide.png>)\n", tmp_path, "t")
    source = (tmp_path / "document.typ").read_text()
    assert re.search(r'image\("tall.svg"[^)]*width: 3.91in', source)
    assert 'image("wide.png", width: 100.0%' in source


def test_names_that_look_like_formulas_or_struck_out_words_stay_as_they_are(tmp_path) -> None:
    name = "/items/$a$/x of ~~b~~ and :smile:"
    text = f"{name}\n\n{to_markdown(pd.DataFrame({'path': [name]}))}"
    with zipfile.ZipFile(io.BytesIO(conversion.docx(text, tmp_path))) as archive:
        document = archive.read("word/document.xml").decode()
    for words in (name, name):
        assert words in document
        document = document.replace(words, "", 1)
    assert "/items/$a$/x of ~~b~~" in conversion.page("t", [(text, {})])


def test_a_document_saved_by_another_program_is_refused(run, tmp_path) -> None:
    export_runs([run], Destination(tmp_path), ["docx"], ONE)
    path = tmp_path / "synchronous_commit.docx"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("mine.txt", "my words")
    edited = path.read_bytes()
    with pytest.raises(ExportRefused, match="--overwrite"):
        export_runs([run], Destination(tmp_path), ["docx"], ONE)
    assert path.read_bytes() == edited


def test_a_section_goes_into_an_existing_document(run, tmp_path) -> None:
    document = tmp_path / "docs" / "design.md"
    document.parent.mkdir()
    document.write_bytes("# Design\r\n\r\nmine é\r\n".encode())
    before = document.read_bytes()
    target = Destination(tmp_path / "pictures", document)
    export_runs([run], target, ["md"], ONE)
    assert document.read_bytes().startswith(before)
    assert b"](<../pictures/synchronous_commit/throughput.svg>)" in document.read_bytes()
    once = document.read_bytes()
    export_runs([run], target, ["md"], ONE)
    assert document.read_bytes() == once


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("design.docx", None, "--to DIR --format docx"),
        ("design.HTML", b"<p>mine</p>", "--to DIR --format docx"),
        ("design", b"mine", "is no Markdown"),
        ("design.md", b"PK\x03\x04\x00", "no text in UTF-8"),
        ("design.markdown", b"mine \xff", "no text in UTF-8"),
    ],
)
def test_a_file_that_is_no_markdown_is_left_as_it_is(
    run, tmp_path, name: str, content: bytes | None, told: str
) -> None:
    document = tmp_path / name
    if content is not None:
        document.write_bytes(content)
    result = CliRunner().invoke(app, ["export", str(run.path), "--into", str(document)])
    assert isinstance(result.exception, (ParameterError, ExportRefused))
    assert told in str(result.exception)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [content] * (content is not None)


def test_a_run_that_there_is_not_is_named_before_a_missing_place(run) -> None:
    result = CliRunner().invoke(app, ["export", "no-such-run"])
    assert "no-such-run" in str(result.exception)
    result = CliRunner().invoke(app, ["export", str(run.path)])
    assert "no place is given" in str(result.exception)


def test_damaged_marks_leave_everything_as_it_was(run, tmp_path) -> None:
    (tmp_path / "synchronous_commit.md").write_text("<!-- perflab:end -->\n")
    with pytest.raises(ExportRefused, match="nothing was written"):
        export_runs([run], Destination(tmp_path), ["md"], ONE)
    assert [path.name for path in tmp_path.iterdir()] == ["synchronous_commit.md"]
    # A page has no marks.
    assert export_runs([run], Destination(tmp_path), ["html"], ONE)


def test_several_runs_are_sections_in_the_order_given(run, other, tmp_path) -> None:
    export_runs([other, run], Destination(tmp_path), ["md"], ONE)
    text = (tmp_path / "synchronous_commit.md").read_text()
    names = re.findall("perflab:begin ([^ ]+)", text)
    assert names == ["synchronous_commit", "synchronous_commit-2"]
    assert text.index(other.run_id) < text.index(run.run_id)


def test_a_section_is_a_page_with_one_figure_and_full_it_has_all(run, tmp_path) -> None:
    words = ["export", str(run.path), "--to", str(tmp_path)]
    assert CliRunner().invoke(app, words).exit_code == 0
    document = tmp_path / "synchronous_commit.md"
    page = document.read_text()
    assert re.findall(r"!\[.*?\]\(<(.*?)>\)", page) == ["synchronous_commit/effect.svg"]
    assert {path.stem for path in (tmp_path / "synchronous_commit").iterdir()} == {"effect"}
    assert "## Method" not in page
    assert len(page.split()) < 500
    assert CliRunner().invoke(app, [*words, "--views", "throughput"]).exit_code == 0
    pictures = re.findall(r"!\[.*?\]\(<(.*?)>\)", document.read_text())
    assert pictures == ["synchronous_commit/throughput.svg"]
    assert CliRunner().invoke(app, [*words, "--full"]).exit_code == 0
    assert "## Method" in document.read_text()
    assert len(re.findall(r"!\[.*?\]\(<(.*?)>\)", document.read_text())) > 5


def test_what_cannot_be_meant_is_refused_with_every_problem(run, tmp_path) -> None:
    content = Content(views=("throughput", "troughput"))
    with pytest.raises(ParameterError) as caught:
        export_runs([run, run], Destination(tmp_path, tmp_path / "a.md"), ["pfd"], content)
    near = ("did you mean 'pdf'", "no view 'troughput' (did you mean 'throughput'?)")
    for words in (*near, "named twice", "--into takes Markdown"):
        assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_format_that_is_not_installed_names_the_extra(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(ExportRefused, match=r"pip install 'perflab\[documents\]'"):
        export_runs([run], Destination(tmp_path), ["md", "pdf"], ONE)
    assert list(tmp_path.iterdir()) == []


def test_a_run_with_other_parameters_takes_no_place_of_the_one_before(tmp_path) -> None:
    def measured(name: str, users: int, commit: str) -> Run:
        variants = [f"old=git:/app@{commit * 40}", "new=command:serve"]
        words = {"users": users, "variants": variants, "blocks": len(name)}
        return write_run(tmp_path / "runs", blocks=1, requests=60, run_id=name, parameters=words)

    one = measured("20261101T100000Z-synchronous_commit-aaaaaa", 8, "a")
    two = measured("20261101T100001Z-synchronous_commit-bbbbbb", 9, "a")
    again = measured("20261101T100002Z-synchronous_commit-cccccc", 8, "b")
    document = tmp_path / "design.md"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFLAB_RUNS", str(tmp_path / "runs"))
        told: list[str] = []
        for run in (one, two, again, two):
            export_runs([run], Destination(tmp_path, document), ["md"], ONE, told.append)
    text = document.read_text()
    regions = re.findall("perflab:begin ([^ ]+)", text)
    assert regions == ["synchronous_commit", "synchronous_commit-2"]
    assert two.run_id in text
    assert again.run_id in text
    assert one.run_id not in text
    assert len(told) == 1
    assert told[0].startswith(f"run {again.run_id} takes the place of {one.run_id}")


def test_a_run_that_is_in_a_document_keeps_its_place_beside_one_of_the_same_question(
    tmp_path,
) -> None:
    first, second = (
        write_run(
            tmp_path / "runs", blocks=1, requests=60, run_id=f"{at}-synchronous_commit-{name}"
        )
        for at, name in (("20261101T100000Z", "aaaaaa"), ("20261101T100001Z", "bbbbbb"))
    )
    document = tmp_path / "design.md"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFLAB_RUNS", str(tmp_path / "runs"))
        for runs in ([first, second], [second]):
            export_runs(runs, Destination(tmp_path, document), ["md"], ONE)
    text = document.read_text()
    assert text.count(first.run_id) == text.count(second.run_id) > 0


def test_a_check_of_nothing_says_where_it_looked(tmp_path) -> None:
    (tmp_path / "design").mkdir()
    result = CliRunner().invoke(app, ["export", "--verify", str(tmp_path / "design")])
    assert "no figure of the lab in" in result.output
    assert "design" in result.output
