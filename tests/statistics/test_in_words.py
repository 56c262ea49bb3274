"""Numbers have three significant digits, also where rounding adds a digit before the point."""

from __future__ import annotations

import pytest

from perflab.statistics.in_words import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1090.4, "1,090"), (46.24, "46.2"), (0.01234, "0.0123"), (0.09998, "0.100"),
        (9.996, "10.0"), (-0.9996, "-1.00"), (99.96, "100"), (0, "0"), (-2.317e-8, "-2.32e-08"),
    ],
)  # fmt: skip
def test_a_number_has_three_digits(value: float, text: str) -> None:
    assert number(value) == text
