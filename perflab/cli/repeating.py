"""The command line as it can be shown and repeated: credentials stand there as references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perflab.credentials import masked
from perflab.load.literals import FORMS
from perflab.load.secret_names import Names

# The parameters of options that have another name.
PARAMETERS = {"-H": "headers", "--header": "headers", "--variant": "variants"}


def repeatable(words: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line with references in the places of credentials.

    ``values`` are the parameters, of which ``secret`` names more credentials.
    """
    return list(_shown(words, Names(values.get("secret", ()))))


def _shown(words: Sequence[str], names: Names) -> Iterator[str]:
    before = ""
    for word in words:
        if word.startswith("--") and "=" in word:
            flag, equals, text = word.partition("=")
        elif word.startswith("-H") and word != "-H":
            flag, equals, text = "-H", "", word[2:]
        else:
            flag, equals, text = "", "", word
        parameter = (flag or before).removeprefix("--")
        form = FORMS.get(PARAMETERS.get(flag or before, parameter))
        yield masked(f"{flag}{equals}{form(text, names) if form else text}")
        before = word
