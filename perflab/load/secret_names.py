"""Names of credentials, and references that stand for their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote

from perflab.credentials import REFERENCE, SCHEMES, keep, reference

# Of headers and variables of the environment, without regard to case and with "_" for "-".
NAMES = re.compile(
    r"pass(?:$|_|w|phrase|code)|token|secret|key|credential|cookie|authorization|jwt"
    r"|auth$|\wpwd$|session(?!_?(?:timeout|ttl|count|age|name|s$))"
)
# Of queries, options and bodies, where "key" alone is seldom a secret and "max_tokens" is none.
NARROW_NAMES = re.compile(
    r"(?:password|passwd|passphrase|passcode|requirepass|token|secret|jwt|bearer|authorization"
    r"|cookie)(?:_?(?:confirmation|repeat|again))?$"
    r"|(?:api|access|auth|secret|private|signing|encryption|master|shared|account|hmac|session"
    r"|deploy)_?key(?:_base)?$|^(?:j?session_?(?:id)?|sid)$"
    r"|(?:^|_)(?:auth|pass|pwd|sig|signature|credentials?|session_id)$"
)
WHOLE_REFERENCE = re.compile(r"(\S+ )?env:([A-Za-z_]\w*)")
# What is filled in later: in commands and variables, and in each of several requests.
PLACEHOLDER = re.compile(r"\{[a-z][a-z0-9_.]*\}")
OF_REQUESTS = re.compile(r"\{(?:uuid|user|(?:line|random):[^{}]+)\}")
# The scheme, or the name of a cookie, before a value that is filled in is no secret.
BEFORE, BEFORE_COOKIE = rf"(?:^{SCHEMES})?", r"(?:(?:^|;\s*)[\w.-]+=)?"


class Names:
    """Which names are those of credentials; ``met`` collects all names that were asked about."""

    def __init__(self, more: Sequence[str] = ()) -> None:
        self._more = {plain(name) for name in more}
        self.met: set[str] = set()

    def has(self, name: str, pattern: re.Pattern[str] = NAMES) -> bool:
        """Return whether a name is that of a credential."""
        same = plain(name)
        self.met.add(same)
        return same in self._more or bool(pattern.search(same))


def plain(name: str) -> str:
    """Return a name without regard to case, and with ``_`` for other signs: of ``user[name]``."""
    return re.sub(r"[-.\[]+", "_", unquote(name).strip().lower()).replace("]", "")


def kept(value: str, name: str) -> str:
    """Return a part of a request by reference, but for its placeholders.

    A reference in it stays.
    """
    before = BEFORE_COOKIE if plain(name) == "cookie" else BEFORE
    return _kept_around(rf"({before}{OF_REQUESTS.pattern})", value, name)


def kept_in_command(value: str, name: str) -> str:
    """Return a part of a command or a variable by reference, but for its placeholders."""
    return _kept_around(rf"({PLACEHOLDER.pattern})", value, name)


def _kept_around(later: str, value: str, name: str) -> str:
    parts = re.split(later, value)
    return "".join(
        part if number % 2 or not part else _by_reference(part, name)
        for number, part in enumerate(parts)
    )


def _by_reference(value: str, name: str) -> str:
    if whole := WHOLE_REFERENCE.fullmatch(value):
        return f"{whole[1] or ''}{reference(whole[2])}"
    return value if REFERENCE.search(value) else keep(value, name)


# Returns what stands for a value, from the value and its name.
Hidden = Callable[[str, str], str]


def named(text: str, names: Names, *patterns: re.Pattern[str], hidden: Hidden = kept) -> str:
    """Return a text in which values with the names of credentials are references."""

    def value(match: re.Match[str]) -> str:
        is_one = names.has(match["name"], NARROW_NAMES)
        return f"{match['head']}{hidden(match['value'], match['name'])}" if is_one else match[0]

    for pattern in patterns:
        text = pattern.sub(value, text)
    return text
