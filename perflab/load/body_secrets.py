"""Finds credentials in bodies of requests (JSON, GraphQL, XML, YAML, forms) and of answers."""

from __future__ import annotations

import json
import re
from contextlib import suppress

from perflab.credentials import masked
from perflab.load.address_secrets import without_passwords
from perflab.load.secret_names import NARROW_NAMES, Hidden, Names, kept, named

MEMBER = re.compile(r'(?P<head>"(?P<name>[^"\\]+)"\s*:\s*")(?P<value>(?:\\.|[^"\\])+)(?=")')
# Lists of credentials; "tokens" alone are often words, as of a language model.
PLURAL = re.compile(r"(?i)(password|secret|(?:access|refresh|api|auth)_?token)s$")
# All texts of such a list.
LIST = re.compile(r'(?P<head>"(?P<name>[^"\\]+)"\s*:\s*\[)(?P<value>[^\[\]{}]+)(?=\])')
TEXT = re.compile(r'(?<=")(?:\\.|[^"\\\s])+(?="(?:\s*,|\s*\Z))')
# As in a query of GraphQL, or in JSON, which may stand in a text of JSON.
ARGUMENT = re.compile(
    r'(?P<head>(?<!\w)(?P<name>\w+)(?:\\")?\s*:\s*(?P<quote>\\?"))'
    r'(?=[^"\\]*\w)(?P<value>(?:(?!(?P=quote)).)+)'
    r"(?=(?P=quote))"
)
NUMBER_MEMBER = re.compile(r'(?P<head>"(?P<name>[^"\\]+)"\s*:\s*)(?P<value>-?\d[\d.eE+-]*)')
FIELD = re.compile(r"(?P<head>(?:^|[&;])(?P<name>[^=&;\s]+)=)(?P<value>(?:(?!;[^=&;\s]+=)[^&\s])+)")
ELEMENT = re.compile(
    r"(?P<head><(?:[\w.-]+:)?(?P<name>[\w.-]+)(?:\s[^<>]*)?>\s*(?:<!\[CDATA\[)?)"
    r"(?P<value>[^<>\s\]](?:[^<>\]\r\n]*[^<>\s\]])?)(?=[\s\]>]*</)"
)
ATTRIBUTE = re.compile(
    r"""(?P<head>\s(?:[\w.-]+:)?(?P<name>[\w.-]+)=(?P<quote>["']))(?P<value>[^"'<>]+)(?=(?P=quote))"""
)
# An element, or an input of a page, that says its name beside its value.
NAMED_VALUE = re.compile(
    r"""(?P<head>\sname=["'](?P<name>[^"'<>]+)["'][^<>]{0,99}?\svalue=(?P<quote>["']))"""
    r"""(?P<value>[^"'<>]+)(?=(?P=quote))"""
)
# One word, in quotes or not: neither prose nor a variable of a query.
WORD = r"""(?!(?:null|~|true|false)["']?(?:\s|\Z))(?P<value>[^\s"'#$|>&*!{\[][^\s"']*)"""
YAML_LINE = re.compile(
    r"""(?m)^(?P<head>[ \t]*(?:-[ \t]+)?["']?(?P<name>[\w.-]+)["']?:[ \t]+(?P<quote>["']?))"""
    rf"""{WORD}(?=(?P=quote)[ \t]*(?:#.*)?\r?$)"""
)
SETTING = re.compile(
    r"""(?m)^(?P<head>[ \t]*(?P<name>[\w.-]+)[ \t]*=[ \t]*(?P<quote>["']?))"""
    rf"""(?![^\s"']*\(){WORD}(?=(?P=quote)[ \t]*(?:[#;].*)?\r?$)"""
)
FLOW = re.compile(
    r"""(?P<head>[{,]\s*(?P<name>[\w.-]+):\s+(?P<quote>["']?))(?!(?:String|Int|ID)\b)"""
    r"""(?P<value>[^\s,{}\[\]"'$(!][^\s,{}\[\]"'$(]*)(?=(?P=quote)\s*[,}])"""
)
# A text of lines, all of which are indented like the first.
YAML_BLOCK = re.compile(
    r"""(?m)^(?P<head>(?P<indent>[ \t]*)(?:-[ \t]+)?["']?(?P<name>[\w.-]+)["']?:[ \t]+"""
    r"""[|>][-+\d]*[ \t]*(?:#.*)?\r?\n)(?P<value>(?P<first>(?P=indent)[ \t]+)\S.*(?:\r?\n|\Z)"""
    r"""(?:(?:(?P=first).*|[ \t]*)(?:\r?\n|\Z))*)"""
)
LINE = re.compile(r"\S[^\r\n]*")
YAML_LIST = re.compile(
    r"""(?m)^(?P<head>(?P<indent>[ \t]*)(?:-[ \t]+)?["']?(?P<name>[\w.-]+)["']?:[ \t]*"""
    r"""(?:#.*)?\r?\n)(?P<value>(?:(?P=indent)[ \t]*-[ \t]+[^\r\n]*(?:\r?\n|\Z))+)"""
)
ITEM = re.compile(r"(?<=- )\S[^\r\n]*")
# What the header of a part of a form calls it.
PART_NAME = re.compile(r'\bname="?(?P<name>[^"\s;]+)')
# Of an address that stands in a text.
IN_TEXT = re.compile(r"""(?P<head>[?&;](?P<name>[^=?&;#\s"'<>\\]+)=)(?P<value>[^&;#\s"'<>\\]+)""")
OF_JSON = (MEMBER, NUMBER_MEMBER, ARGUMENT, IN_TEXT)
OF_XML = (ELEMENT, NAMED_VALUE, ATTRIBUTE, MEMBER, NUMBER_MEMBER, IN_TEXT)


def body(text: str, names: Names, hidden: Hidden = kept) -> str:
    """Return a body (JSON, GraphQL, XML, YAML, a form), whose parts may be credentials.

    ``hidden`` returns what stands for a value, from the value and its name.
    """
    if boundary := re.match(r"--(?!-\s)\S+", text):
        parts = text.split(boundary[0])
        return boundary[0].join(_part(part, names, hidden) for part in parts)
    if re.match(r"[\w.%+\[\]-]+=", text) and "\n" not in text.strip():
        fields = (without_passwords(field, hidden) for field in text.split("&"))
        return named("&".join(fields), names, FIELD, hidden=hidden)
    text = without_passwords(text, hidden)
    if text.lstrip()[:1] == "<":
        return named(text, names, *OF_XML, hidden=hidden)
    text = _of_lists(text, LIST, TEXT, names, hidden)
    if _is_json(text):
        return named(text, names, *OF_JSON, hidden=hidden)
    text = _of_lists(text, YAML_BLOCK, LINE, names, hidden)
    text = _of_lists(text, YAML_LIST, ITEM, names, hidden)
    return named(text, names, *OF_JSON, YAML_LINE, SETTING, FLOW, hidden=hidden)


def _is_json(text: str) -> bool:
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return True
    return False


def _of_lists(
    text: str, whole: re.Pattern[str], part: re.Pattern[str], names: Names, hidden: Hidden
) -> str:
    """Return a text in which each part of what has a credential's name is hidden."""

    def each(match: re.Match[str]) -> str:
        name = match["name"]
        if not names.has(PLURAL.sub(r"\1", name), NARROW_NAMES):
            return match[0]
        found = part.sub(lambda one: hidden(one[0], name), match["value"])
        return match["head"] + found

    return whole.sub(each, text)


def _part(text: str, names: Names, hidden: Hidden) -> str:
    """Return a part of a form: the lines below its header may be a credential, each by itself."""
    header_end = re.search(r"\r?\n\r?\n", text)
    if not header_end:
        return text
    head, value = text[: header_end.end()], text[header_end.end() :]
    found = PART_NAME.search(head)
    if not found or not names.has(found["name"], NARROW_NAMES):
        return head + body(value, names, hidden)
    return head + LINE.sub(lambda line: hidden(line[0], found["name"]), value)


def shown_answer(text: str) -> str:
    """Return an answer without values that a service seems to give as credentials."""
    return body(masked(text), Names(), lambda _value, _name: "...")
