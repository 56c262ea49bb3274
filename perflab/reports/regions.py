"""Rewrites the marked regions of a Markdown text and leaves the author's text around them alone.

A mark is a comment of one line. A begin mark holds the region's name and a digest of its body, so
that an edit by hand is noticed. Marks in fenced code are ordinary text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from perflab.errors import ExportRefused

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
BEFORE, AFTER = "<!-- perflab:", " -->"
END = f"{BEFORE}end{AFTER}"
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
DIGITS = 16
# What a formatter of Markdown changes, without changing what is said: bullets, the rules and
# padding of tables, emphasis and escapes.
BULLET = re.compile(r"^[ \t]*[*+-][ \t]+", re.MULTILINE)
TABLE_RULE = re.compile(r"^[ \t|:]*-[ \t|:-]*$", re.MULTILINE)
MARKUP = re.compile(r"[*_\\|]")


@dataclass(frozen=True)
class Region:
    """A marked region: lines ``first`` and ``last`` are its marks, ``body`` is the text between."""

    name: str
    digest: str
    body: str
    first: int
    last: int

    def is_edited(self) -> bool:
        """Return whether the body was edited by hand."""
        return bool(self.body.strip()) and digest(self.body) != self.digest


def digest(body: str) -> str:
    """Return the digest of the words of a body, without the layout that formatters change."""
    words = MARKUP.sub(" ", TABLE_RULE.sub("", BULLET.sub("", _plain(body)))).split()
    return hashlib.sha256(" ".join(words).encode("utf-8", "surrogateescape")).hexdigest()[:DIGITS]


def regions(text: str) -> list[Region]:
    """Return the marked regions of a text.

    ExportRefused where a mark is damaged or lacks its other half, regions are nested, or two have
    one name.
    """
    lines = _lines(text)
    complete: list[Region] = []
    opened: tuple[int, list[str]] | None = None
    for place, fence in enumerate(_fenced(lines)):
        mark = _mark_words(lines[place])
        if fence or mark is None:
            continue
        kind, *words = mark or [""]
        if kind == "begin" and 1 <= len(words) <= 2 and NAME.fullmatch(words[0]):
            if opened:
                raise _refused(
                    opened[0], f"begins '{opened[1][0]}' and another begins before its end"
                )
            opened = place, words
        elif kind == "end" and not words:
            if not opened:
                raise _refused(place, "ends a region that does not begin")
            body = "".join(lines[opened[0] + 1 : place])
            complete.append(Region(opened[1][0], "".join(opened[1][1:]), body, opened[0], place))
            opened = None
        else:
            raise _refused(place, "cannot be read")
    if opened:
        raise _refused(opened[0], f"begins '{opened[1][0]}', which does not end")
    for number, region in enumerate(complete):
        if region.name in [other.name for other in complete[:number]]:
            raise _refused(region.first, f"begins '{region.name}' a second time")
    return complete


def filled(text: str, bodies: Mapping[str, str], *, overwrite: bool = False) -> str:
    """Return ``text`` with new ``bodies``, by name of region; all else in it stays as it is.

    A body that has no region yet goes to the end of the text, with marks that may be moved. With
    ``overwrite`` regions that were edited by hand are replaced too. ExportRefused where marks are
    damaged, or a region was edited by hand.
    """
    for name, body in bodies.items():
        if any(_mark_words(line) is not None for line in _lines(body)):
            raise ExportRefused(f"the section '{name}' itself holds a line that looks like a mark")
    existing = {region.name: region for region in regions(text)}
    missing = [name for name in bodies if name not in existing]
    lines = _lines(text)
    if missing and _fenced([*lines, "\n"])[-1]:
        raise ExportRefused("the text ends within a code block; close it, or put marks above it")
    replaced = [region for region in existing.values() if region.name in bodies]
    lines.append(_new(lines, {name: bodies[name] for name in missing}))
    # From the end on, so that places before it stay as they are.
    for region in sorted(replaced, key=lambda region: -region.first):
        body = bodies[region.name]
        if region.is_edited() and digest(region.body) != digest(body) and not overwrite:
            raise ExportRefused(
                f"'{region.name}' was edited by hand (line {region.first + 1}); move your text out "
                "of the marks, or give --overwrite to lose it"
            )
        begin, end = lines[region.first], lines[region.last]
        block = "\ufeff" * begin.startswith("\ufeff") + _block(region.name, body, _line_end(begin))
        # The end mark may be the end of the text, without a newline.
        lines[region.first : region.last + 1] = [
            block if end.endswith("\n") else block.rstrip("\r\n")
        ]
    return "".join(lines)


def _new(before: list[str], bodies: Mapping[str, str]) -> str:
    """Return the regions for bodies that have none yet, apart from the lines before them."""
    text = ""
    line_end = _line_end(before[0]) if before else "\n"
    for name, body in bodies.items():
        last = text or "".join(before[-1:])
        is_open = bool(last) and not last.endswith("\n")
        gap = line_end * (is_open + bool(last.strip("\r\n")))
        text += gap + _block(name, body, line_end)
    return text


def _block(name: str, body: str, line_end: str) -> str:
    body = _plain(body)
    body = body if body.endswith("\n") or not body else f"{body}\n"
    return f"{_begin(name, body)}\n{body}{END}\n".replace("\n", line_end)


def _plain(body: str) -> str:
    return body.replace("\r\n", "\n")


def _line_end(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n"


def _lines(text: str) -> list[str]:
    """Return the lines with their line ends; joined they are the text."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _begin(name: str, body: str) -> str:
    return f"{BEFORE}begin {name} {digest(body)}{AFTER}"


def _mark_words(line: str) -> list[str] | None:
    """Return the words of a mark; None for every other line."""
    text = line.removeprefix("\ufeff").rstrip()
    if not text.startswith(BEFORE):
        return None
    if not text.endswith(AFTER):
        return ["unclosed"]
    return text.removeprefix(BEFORE).removesuffix(AFTER).split()


def _fenced(lines: list[str]) -> list[str]:
    """Return for each line the fence of the code block that it is in, or "" (CommonMark 4.5)."""
    fences, fence = [], ""
    for line in lines:
        match = FENCE.match(line.rstrip("\r\n"))
        marker, info = match.groups() if match else ("", "")
        if fence:
            fences.append(fence)
            if marker.startswith(fence) and not info.strip():
                fence = ""
        else:
            # Backticks later in the line make it inline code, not a fence.
            fence = "" if marker.startswith("`") and "`" in info else marker
            fences.append("")
    return fences


def _refused(place: int, why: str) -> ExportRefused:
    return ExportRefused(f"line {place + 1}: this mark {why}; mend the marks, nothing was written")
