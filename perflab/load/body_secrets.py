"""Finds credentials in bodies of requests (JSON, GraphQL, XML, YAML, forms) and of answers."""

from __future__ import annotations

import re

from perflab.credentials import masked
from perflab.load.secret_names import NARROW_NAMES, Names, kept, named, plain

MEMBER = re.compile(
    r'(?P<head>"(?P<name>[^"\\]+)"\s*:\s*(?:\[\s*)?")(?P<value>(?:\\.|[^"\\])+)(?=")'
)
# As in a query of GraphQL, which may stand in a text of JSON.
ARGUMENT = re.compile(
    r'(?P<head>(?<!\w)(?P<name>\w+)\s*:\s*(?P<quote>\\?"))(?P<value>(?:(?!(?P=quote)).)+)(?=(?P=quote))'
)
NUMBER_MEMBER = re.compile(r'(?P<head>"(?P<name>[^"\\]+)"\s*:\s*)(?P<value>-?\d[\d.eE+-]*)')
FIELD = re.compile(r"(?P<head>(?:^|&)(?P<name>[^=&\s]+)=)(?P<value>[^&\s]+)")
ELEMENT = re.compile(
    r"(?P<head><(?:[\w.-]+:)?(?P<name>[\w.-]+)(?:\s[^<>]*)?>\s*(?:<!\[CDATA\[)?)"
    r"(?P<value>[^<>\s\]]+)(?=[\s\]>]*</)"
)
ATTRIBUTE = re.compile(
    r"""(?P<head>\s(?:[\w.-]+:)?(?P<name>[\w.-]+)=(?P<quote>["']))(?P<value>[^"'<>]+)(?=(?P=quote))"""
)
# One word, or a text in quotes: neither prose nor a variable of a query.
YAML_LINE = re.compile(
    r"""(?m)^(?P<head>[ \t]*(?:-[ \t]+)?["']?(?P<name>[\w.-]+)["']?:[ \t]+(?P<quote>["']?))"""
    r"""(?!(?:null|~|true|false)\s)(?P<value>[^\s"'#$|>&*!{\[][^\s"']*)"""
    r"""(?=(?P=quote)[ \t]*(?:#.*)?\r?$)"""
)
# A text of lines, all of which are indented like the first.
YAML_BLOCK = re.compile(
    r"""(?m)^(?P<head>(?P<indent>[ \t]*)(?:-[ \t]+)?["']?(?P<name>[\w.-]+)["']?:[ \t]+"""
    r"""[|>][-+\d]*[ \t]*(?:#.*)?\r?\n)(?P<value>(?P<first>(?P=indent)[ \t]+)\S.*(?:\r?\n|\Z)"""
    r"""(?:(?:(?P=first).*|[ \t]*)(?:\r?\n|\Z))*)"""
)
# What the header of a part of a form calls it.
PART_NAME = re.compile(r'\bname="?(?P<name>[^"\s;]+)')


def body(text: str, names: Names) -> str:
    """Return a body (JSON, GraphQL, XML, YAML, a form), whose parts may be credentials."""
    if boundary := re.match(r"--\S+", text):
        parts = text.split(boundary[0])
        return boundary[0].join(_part(part, names) for part in parts)
    if re.match(r"[\w.%+-]+=", text):
        return named(text, names, FIELD)
    match text.lstrip()[:1]:
        case "<":
            return named(text, names, ELEMENT, ATTRIBUTE, MEMBER, NUMBER_MEMBER)
        case "{" | "[" | '"':
            return named(text, names, MEMBER, NUMBER_MEMBER, ARGUMENT)
    text = YAML_BLOCK.sub(lambda match: _block(match, names), text)
    return named(text, names, MEMBER, NUMBER_MEMBER, ARGUMENT, YAML_LINE)


def _block(match: re.Match[str], names: Names) -> str:
    """Return a text of several lines, each of which may be a part of a credential."""
    if not names.has(match["name"], NARROW_NAMES):
        return match[0]
    return match["head"] + _lines(match["value"], match["name"])


def _lines(text: str, name: str) -> str:
    return re.sub(r"[^\s][^\r\n]*", lambda line: kept(line[0], name), text)


def _part(text: str, names: Names) -> str:
    """Return a part of a form: the lines below its header may be a credential, each by itself."""
    header_end = re.search(r"\r?\n\r?\n", text)
    if not header_end:
        return text
    head, value = text[: header_end.end()], text[header_end.end() :]
    found = PART_NAME.search(head)
    if not found or not names.has(found["name"], NARROW_NAMES):
        return head + body(value, names)
    return head + _lines(value, found["name"])


def shown_answer(text: str) -> str:
    """Return an answer without values that a service seems to give as credentials."""

    def member(match: re.Match[str]) -> str:
        is_one = NARROW_NAMES.search(plain(match["name"]))
        return f"{match['head']}..." if is_one else match[0]

    return MEMBER.sub(member, masked(text))
