"""Credentials stand as references; their values are looked up late and masked in every text."""

from __future__ import annotations

import base64

import pytest

from perflab import credentials
from perflab.credentials import filled_in, keep, look_up, masked, stand_in
from perflab.errors import ParameterError, ServiceFailed


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_kept", {})
    monkeypatch.setattr(credentials, "_known", {})
    monkeypatch.setattr(credentials, "_names", {})
    monkeypatch.setattr(credentials, "_plain", set())


def test_a_literal_is_named_by_its_place_and_comes_back_when_it_is_sent() -> None:
    shown = keep("Bearer abc123xyz", "Authorization")
    assert shown == "{env:AUTHORIZATION}"
    assert filled_in(f"Authorization: {shown}") == "Authorization: Bearer abc123xyz"


def test_another_value_of_one_name_gets_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_TOKEN", "of the environment")
    assert keep("first", "db-password") == keep("first", "DB_PASSWORD") == "{env:DB_PASSWORD}"
    assert keep("second", "DB_PASSWORD") == "{env:DB_PASSWORD_2}"
    assert keep("third", "DB_TOKEN") == "{env:DB_TOKEN_2}"


def test_many_values_of_one_name_are_each_looked_up_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up: list[str] = []
    value_of = credentials.value_of

    def counted(name: str) -> str | None:
        looked_up.append(name)
        return value_of(name)

    monkeypatch.setattr(credentials, "value_of", counted)
    references = [keep(f"value-{number}", "API_TOKEN") for number in (*range(500), *range(500))]
    assert references[:500] == references[500:]
    assert len({*references}) == 500
    assert len(looked_up) < 5 * len(references)


def test_a_variable_that_is_not_set_or_breaks_a_line_is_told_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BROKEN", "half-secret\r\nX-More: 1")
    values, problems = look_up(["ABSENT_HERE", "BROKEN"])
    assert values == {}
    assert [name in text for name, text in zip(("ABSENT_HERE", "BROKEN"), problems, strict=True)]
    assert "half-secret" not in "".join(problems)


@pytest.mark.parametrize(
    "told",
    [
        "Bearer s3cr3t+to/ken", "s3cr3t+to/ken", "got s3cr3t%2Bto%2Fken in the query",
        '{"auth": "Bearer s3cr3t+to\\/ken"}'.replace("\\", ""),
    ],
)  # fmt: skip
def test_the_parts_and_spellings_of_a_value_are_masked(told: str) -> None:
    keep("Bearer s3cr3t+to/ken", "Authorization")
    assert "s3cr3t" not in masked(told)


def test_the_password_within_basic_authorization_is_masked() -> None:
    keep("Basic " + base64.b64encode(b"app:pass-5word").decode(), "Authorization")
    assert "pass-5word" not in masked("login of app with pass-5word refused")


def test_a_short_value_is_masked_as_a_word_and_not_within_others() -> None:
    keep("abcd", "API_KEY")
    assert masked("abcd abcdef") == "{env:API_KEY} abcdef"


@pytest.mark.parametrize(
    "error",
    [
        ServiceFailed("new", "ended", "DB_PASSWORD=hunter22"),
        ParameterError("perflab duel", ["variants = 'env DB_PASSWORD=hunter22'"]),
    ],
)
def test_an_error_shows_no_credential(error: Exception) -> None:
    # Errors are made before the value is known here, and so made again.
    keep("hunter22", "DB_PASSWORD")
    assert "hunter22" not in str(type(error).__new__(type(error), *map(masked, error.args)))


@pytest.mark.promise
def test_an_error_masks_what_a_log_repeats() -> None:
    keep("hunter22", "DB_PASSWORD")
    assert "{env:DB_PASSWORD}" in str(ServiceFailed("new", "ended", "it is hunter22"))
    assert "hunter22" not in str(ParameterError("perflab duel", ["'hunter22' is wrong"]))


def test_another_variable_can_stand_in_for_a_recorded_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "of mine")
    recorded = ("Authorization: {env:AUTHORIZATION}", "Accept: */*")
    assert not stand_in(("Authorization: {env:MINE}",), recorded)
    assert stand_in(("Authorization: {env:MINE}", "Accept: */*"), recorded)
    assert filled_in(recorded[0]) == "Authorization: of mine"
