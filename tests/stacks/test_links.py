"""The limits of a link are checked before anything starts."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from perflab.errors import StackError
from perflab.stacks.plan import Link
from perflab.stacks.spec import load_service


@pytest.mark.parametrize("value", [0, 999, 1e10, math.nan, "fast", None], ids=str)
def test_a_wrong_limit_is_refused_before_anything_starts(value: object) -> None:
    with pytest.raises(StackError, match=r"bytes_per_s = .* must be .*, or 'unlimited'"):
        load_service("link").resolve({"bytes_per_s": value})  # type: ignore[dict-item]
    with pytest.raises(ValidationError, match="bytes_per_s"):
        Link.model_validate({"bytes_per_s": value})


def test_experiments_and_service_allow_the_same_limits() -> None:
    described = Link.model_json_schema()["properties"]
    for name, setting in load_service("link").settings.items():
        field = described[name]
        number = field["anyOf"][0] if "anyOf" in field else field
        assert (number["minimum"], number["maximum"]) == (setting.minimum, setting.maximum)
        assert field["default"] == setting.default
