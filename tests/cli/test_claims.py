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
