"""Regions of a Markdown text that are written anew, between marks; all around is the author's.

A mark is a comment of one line. A begin mark holds the region's name and a digest of what was
written, so that an edit by hand is noticed. Marks in fenced code are text like any other.
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


@dataclass(frozen=True)
class Region:
    """A marked region: the lines ``first`` and ``last`` are its marks, ``body`` lies between."""

    name: str
    digest: str
    body: str
    first: int
    last: int

    def is_edited(self) -> bool:
        """Return whether somebody else wrote what stands in it."""
        return bool(self.body.strip()) and digest(self.body) != self.digest


def digest(body: str) -> str:
    """Return the digest of a body; line ends do not matter, as version control changes them."""
    return hashlib.sha256(_plain(body).encode("utf-8", "surrogateescape")).hexdigest()[:DIGITS]


def regions(text: str) -> list[Region]:
    """Return the marked regions of a text.

    Raises
    ------
    ExportRefused
        A mark is damaged or lacks its other half, regions are nested, or two have one name.
    """
    lines = _lines(text)
    found: list[Region] = []
    begun: tuple[int, list[str]] | None = None
    for place in _marks(lines):
        kind, *rest = _said(lines[place]) or [""]
        if kind == "begin" and 1 <= len(rest) <= 2 and NAME.fullmatch(rest[0]):
            if begun:
                raise _refused(
                    begun[0], f"begins '{begun[1][0]}' and another begins before its end"
                )
            begun = place, rest
        elif kind == "end" and not rest:
            if not begun:
                raise _refused(place, "ends a region that does not begin")
            body = "".join(lines[begun[0] + 1 : place])
            found.append(Region(begun[1][0], "".join(begun[1][1:]), body, begun[0], place))
            begun = None
        else:
            raise _refused(place, "cannot be read")
    if begun:
        raise _refused(begun[0], f"begins '{begun[1][0]}', which does not end")
    for number, region in enumerate(found):
        if region.name in {other.name for other in found[:number]}:
            raise _refused(region.first, f"begins '{region.name}' a second time")
    return found


def filled(
    text: str,
    bodies: Mapping[str, str],
    *,
    append: bool = False,
    overwrite: bool = False,
) -> str:
    """Return ``text`` with new bodies in its regions; every other character stays as it is.

    Parameters
    ----------
    bodies : mapping
        What shall stand in the region of each name.
    append : bool
        Put at the end, between marks, what has no region yet.
    overwrite : bool
        Write also over what was edited by hand.

    Raises
    ------
    ExportRefused
        Marks are damaged or missing, or a region was edited by hand.
    """
    for name, body in bodies.items():
        if any(_said(line) is not None for line in _lines(body)):
            raise ExportRefused(f"the section '{name}' itself holds a line that looks like a mark")
    found = {region.name: region for region in regions(text)}
    missing = [name for name in bodies if name not in found]
    if missing and not append:
        begin, end = _begin(missing[0], ""), END
        raise ExportRefused(
            f"there are no marks for '{missing[0]}'; put the lines '{begin}' and '{end}' where it "
            "shall stand, or append it to a Markdown file with --into FILE"
        )
    for name in bodies:
        if name in found and not overwrite:
            _check_unedited(found[name], bodies[name])
    lines = _lines(text)
    for region in sorted(found.values(), key=lambda each: -each.first):
        if region.name in bodies:
            own = _block(region.name, bodies[region.name], _line_end(lines[region.first]))
            if lines[region.first].startswith("\ufeff"):
                own = f"\ufeff{own}"
            # The text may end with the mark.
            whole = lines[region.last].endswith("\n")
            lines[region.first : region.last + 1] = [own if whole else own.rstrip("\r\n")]
    return _appended("".join(lines), {name: bodies[name] for name in missing})


def _check_unedited(region: Region, body: str) -> None:
    if region.is_edited() and digest(region.body) != digest(body):
        raise ExportRefused(
            f"'{region.name}' was edited by hand (line {region.first + 1}); move your text out of "
            "the marks, or give --overwrite to lose it"
        )


def _appended(text: str, bodies: Mapping[str, str]) -> str:
    lines = _lines(text)
    if bodies and _fenced([*lines, "\n"])[-1]:
        raise ExportRefused("the text ends within a code block; close it, or put marks above it")
    end = _line_end(lines[0]) if lines else "\n"
    for name, body in bodies.items():
        gap = "" if not text else end if text.endswith("\n") else end * 2
        text += gap + _block(name, body, end)
    return text


def _block(name: str, body: str, end: str) -> str:
    body = _plain(body)
    body = body if body.endswith("\n") or not body else f"{body}\n"
    return f"{_begin(name, body)}\n{body}{END}\n".replace("\n", end)


def _plain(body: str) -> str:
    return body.replace("\r\n", "\n")


def _line_end(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n"


def _lines(text: str) -> list[str]:
    """Return the lines with their ends; joined they are the text."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _begin(name: str, body: str) -> str:
    return f"{BEFORE}begin {name} {digest(body)}{AFTER}"


def _said(line: str) -> list[str] | None:
    """Return the words of a mark; None for every other line."""
    text = line.removeprefix("\ufeff").rstrip()
    if not text.startswith(BEFORE):
        return None
    if not text.endswith(AFTER):
        return ["unclosed"]
    return text.removeprefix(BEFORE).removesuffix(AFTER).split()


def _marks(lines: list[str]) -> list[int]:
    inside = _fenced(lines)
    return [n for n, line in enumerate(lines) if not inside[n] and _said(line) is not None]


def _fenced(lines: list[str]) -> list[str]:
    """Return of each line the fence of the code that it belongs to, if any (CommonMark 4.5)."""
    found, fence = [], ""
    for line in lines:
        match = FENCE.match(line.rstrip("\r\n"))
        run, rest = match.groups() if match else ("", "")
        if fence:
            found.append(fence)
            if run.startswith(fence) and not rest.strip():
                fence = ""
        else:
            # Backticks in what follows make it code in a line, no fence.
            fence = "" if run.startswith("`") and "`" in rest else run
            found.append("")
    return found


def _refused(place: int, why: str) -> ExportRefused:
    return ExportRefused(f"line {place + 1}: this mark {why}; mend the marks, nothing was written")
