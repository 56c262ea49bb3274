"""Files that cannot be imported are refused with file, line and way out; nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perflab.errors import ImportRefused, ParameterError
from perflab.recordings.imports import import_files

DATA = Path(__file__).parent / "data"


def written(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: Path) -> str:
    """Return the text of a refused import, after a check that nothing was written."""
    runs = path.parent / "runs"
    runs.mkdir()
    with pytest.raises(ImportRefused) as refused:
        import_files({"a": [path]}, runs)
    assert str(path) in str(refused.value)
    assert list(runs.iterdir()) == []
    runs.rmdir()
    return str(refused.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (b"\x1f\x8b\x08\x00\x00", "unpack it"),
        ("Summary:\n".encode("utf-16"), "save it as UTF-8"),
        (b"{}", "it is no output of"),
        (b"[1, 2, 3]", "it is no output of"),
        (b"hello\n", "docs/import.md lists"),
        (b"Running 1s test @ http://h/\n  Thread calibration: mean lat.: 1ms\n", "no output of"),
    ],
)
def test_what_no_tool_wrote_or_holds_too_little_names_the_way_out(
    content: bytes, message: str, tmp_path: Path
) -> None:
    assert message in refusal(written(tmp_path, "file", content))


def test_a_file_that_is_larger_than_any_report_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path, "wrk.txt", (DATA / "wrk-1.txt").read_bytes())
    with path.open("ab") as file:
        # A sparse file of gigabytes takes no room.
        file.truncate(3 * 2**30)
    assert "at most 268,435,456 are allowed" in refusal(path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("wrk-1.txt", lambda text: text.replace("ms ", "xs ", 1), "line 4"),
        ("wrk-1.txt", lambda text: text.replace("913.12", "9,13"), "LC_ALL=C"),
        ("wrk-1.txt", lambda text: text + text, "line 15 is the same as wrk-1.txt"),
        ("ab-1.txt", lambda text: text.replace("Complete", "Incomplete"), "without its requests"),
        ("locust-1_stats.csv", lambda text: text.replace("109,4,", "109,-4,"), "line 4"),
        ("locust-1_stats.csv", lambda text: text[:-2], "line 4: it ends within a line"),
        ("k6-1.csv", lambda text: text.replace("http_reqs", "x", 1), "and 1 of http_reqs"),
        ("k6-summary-1.json", lambda text: text.replace('"count": 6', '"count": 6.5'), "a count"),
        ("oha-1.json", lambda text: text.replace('"total": 0.', '"total": -0.'), "at least 0"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused_where_it_stands(
    name: str, change: Callable[[str], str], message: str, tmp_path: Path
) -> None:
    text = (DATA / name).read_text()
    changed = change(text)
    assert changed != text
    assert message in refusal(written(tmp_path, name, changed))


def test_a_bad_file_after_good_ones_leaves_nothing_behind(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    bad = written(tmp_path, "bad.txt", (DATA / "wrk-2.txt").read_bytes()[:300])
    with pytest.raises(ImportRefused, match=r"bad\.txt"):
        import_files({"a": [DATA / "wrk-1.txt", bad]}, runs)
    assert list(runs.iterdir()) == []


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"a": []}, "has no file"),
        ({}, "no file was named"),
        ({"a b": [DATA / "wrk-1.txt"]}, "a name has letters"),
        ({"../a": [DATA / "wrk-1.txt"]}, "a name has letters"),
        ({"a": [DATA / "wrk-1.txt"] * 2}, "the same as"),
        ({"a": [DATA / "wrk-1.txt"], "b": [DATA / "ab-1.txt"]}, "holds loads of one tool"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_before_anything_is_written(
    groups: dict[str, list[Path]], message: str, tmp_path: Path
) -> None:
    with pytest.raises((ParameterError, ImportRefused), match=message):
        import_files(groups, tmp_path)
    assert list(tmp_path.iterdir()) == []
