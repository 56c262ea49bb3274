"""The files of the registry: the same bytes everywhere, of the published length."""

from __future__ import annotations

import hashlib
import io
import zipfile

import pytest
from registry import zips

LARGE, PUBLISHED_BYTES = "arnir0_Tiny-LLM", 24_834_009
DIGEST = "e5efbead601599208bdd606881cbc71564b2d575ab77bed94e1c8b55c9b40b7a"


def test_the_large_model_is_a_valid_zip_of_the_published_length_and_always_the_same() -> None:
    made = zips.of_size(LARGE, PUBLISHED_BYTES)
    assert len(made) == PUBLISHED_BYTES
    archive = zipfile.ZipFile(io.BytesIO(made))
    assert archive.testzip() is None
    assert archive.namelist() == ["config.json", "README.md", "model.safetensors"]
    assert hashlib.sha256(made).hexdigest() == DIGEST


@pytest.mark.parametrize("size", [0, 400])
def test_a_zip_too_short_for_its_files_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"size = {size}"):
        zips.of_size(LARGE, size)
