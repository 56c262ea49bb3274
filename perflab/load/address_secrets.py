"""Finds credentials in addresses: user and password, tokens of queries, names of data sources."""

from __future__ import annotations

import re

from perflab.credentials import REFERENCE, USER_AND_PASSWORD, keep
from perflab.load.secret_names import PLACEHOLDER, Hidden, Names, named

QUERY = re.compile(r"(?P<head>[?&;#](?P<name>[^=?&;#\s]+)=)(?P<value>[^&;#\s]+)")
# Nobody is called so: a token that stands for user and password.
LONG_USER = re.compile(r"(?<=://)[^\s/?#@:'\"{}]{16,}(?=(?::[^\s/?#'\"]*)?@)")
# As Go's drivers have it.
DATA_SOURCE = re.compile(r"(?<![\w:/@.{-])(\w[\w.-]*):([^\s:/@'\"]+)@(?=(?:tcp|unix|udp)\()")


def target(text: str, names: Names) -> str:
    """Return an address or a path; its query may hold credentials."""
    return named(without_passwords(text), names, QUERY)


def without_credentials(path: str) -> str:
    """Return a path to be shown: its query without the values of credentials."""
    return named(path, Names(), QUERY, hidden=lambda _value, _name: "...") if "?" in path else path


def without_passwords(text: str, hidden: Hidden = keep) -> str:
    """Return a text in which passwords of addresses, and tokens in their place, are references."""

    def kept_back(match: re.Match[str]) -> str:
        is_filled_later = PLACEHOLDER.fullmatch(match[2]) or REFERENCE.fullmatch(match[2])
        if is_filled_later or REFERENCE.fullmatch(match[0][:-1]):
            return match[0]
        return f"{match[1]}:{hidden(match[2], 'URL_PASSWORD')}@"

    for pattern in (USER_AND_PASSWORD, DATA_SOURCE):
        text = pattern.sub(kept_back, text)
    return LONG_USER.sub(lambda match: hidden(match[0], "URL_TOKEN"), text)
