"""The page of one load: whole in itself, honest about validity, and without secrets or markup."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab.paths import project_root
from perflab.reports.load_page import masked
from tests.load.processes import served


@pytest.fixture
def url() -> Iterator[str]:
    with served("0.002", "good") as (port, _):
        yield f"http://127.0.0.1:{port}/"


def page(url: str, file: Path, *words: str) -> str:
    subprocess.run(
        [
            sys.executable, "-c", "from perflab.cli import main; main()", "load", url, *words,
            "--report", str(file), "--workers", "1",
        ],
        cwd=project_root(), timeout=120, check=False, capture_output=True,
    )  # fmt: skip
    return file.read_text()


def test_a_page_needs_nothing_from_elsewhere_and_tells_validity_before_numbers(
    url: str, tmp_path: Path
) -> None:
    text = page(url, tmp_path / "page.html", "--users", "3", "-n", "400")
    assert not re.search(r"(?:src|href)=\"(?!#)", text)
    assert "<script" not in text
    assert "@import" not in text
    assert 0 < text.index('<section class="') < text.index('id="numbers"') < text.index("<svg")
    assert re.search(r"<h2>(Valid|INVALID)", text)
    assert "n&lt;3688" in text
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    for words in ("Response time over the load", "Throughput over the load", "Machine"):
        assert words in text


@pytest.mark.slow
def test_what_servers_and_users_write_is_shown_and_not_read_as_markup(
    url: str, tmp_path: Path
) -> None:
    text = page(
        url + "?<b>", tmp_path / "page.html", "-H", "X-Token: geheim", "--users", "1", "-n", "9",
        "--expect-body", "<i>",
    )  # fmt: skip
    assert "<b>" not in text
    assert "<i>" not in text
    assert "?&lt;b&gt;" in text
    assert "geheim" not in text
    assert "9 x body" in text


def test_values_that_let_somebody_in_are_left_out_of_the_command() -> None:
    words = [
        "perflab", "load", "-H", "Authorization: a", "--header=Cookie: b", "-HX-Api-Key: c",
        "--header", "Cookie: s=d", "-H", "Accept: kept",
    ]  # fmt: skip
    shown = " ".join(masked(words))
    for secret in (": a", ": b", ": c", "=d"):
        assert secret not in shown
    assert "Accept: kept" in shown
    assert "Authorization: (left out)" in shown
