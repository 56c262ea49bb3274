"""`make docs`: every page is there, its links lead somewhere, and it asks nobody else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.paths import project_root

# What a browser would fetch by itself.
FETCHED = re.compile(
    r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=.?(https?://[^\"' >]+)"
)
DRAWN = ("registry_downloads",)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_site_has_the_notebooks_drawn_and_fetches_nothing_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFLAB_REFERENCE", str(project_root() / "data" / "reference"))
    script = str(project_root() / "scripts" / "site.py")
    done = subprocess.run(
        [sys.executable, script, str(tmp_path), *DRAWN],
        capture_output=True, text=True, timeout=550,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.html")}
    assert [each for text in pages.values() for each in FETCHED.findall(text)] == []
    gallery = pages[Path("docs/gallery.html")]
    for name in DRAWN:
        drawn = re.findall(rf'href="\.\./notebooks/{name}\.html"><img', gallery)
        assert len(drawn) >= 2, name
    assert "perflab duel" in pages[Path("docs/reference/commands.html")]
    assert "blocks" in pages[Path("docs/reference/parameters.html")]
    assert (tmp_path / "search" / "search_index.json").stat().st_size > 100_000
