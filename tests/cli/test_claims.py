"""``perflab claims`` as it is typed: the ledger and the study check, narrow and plain."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Tell


def test_every_row_and_the_counts_fit_eighty_columns(perflab: Tell, tmp_path: Path) -> None:
    output, errors = perflab(tmp_path, "claims", "--study", "inference")
    assert errors == ""
    assert max(map(len, output.splitlines())) <= 80
    assert "\x1b" not in output
    assert "perflab run sync_vs_async" in output
    assert "published rows: " in output
    assert output == "".join(f"{line.rstrip()}\n" for line in output.splitlines())


def test_the_study_check_says_how_many_findings_there_are(perflab: Tell, tmp_path: Path) -> None:
    output, _ = perflab(tmp_path, "claims", "--check", "--study", "metricstream")
    assert max(map(len, output.splitlines())) <= 80
    assert "2 to 3 in flight of 100 users" in " ".join(output.split())
