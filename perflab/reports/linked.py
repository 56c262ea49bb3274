"""What a Markdown document links: the files, not the pages."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

_INLINE = re.compile(r"\]\(\s*(?:<([^>]+)>|([^)\s]+))")
_HTML = re.compile(r"<(?:img|source|a)\b[^>]*?\b(?:src|srcset|href)\s*=\s*[\"']([^\"'\s]+)", re.I)
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)", re.M)
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]+`", re.M | re.S)


def links_of(document: Path) -> list[Path]:
    """Return the files that a document links, as absolute paths; they may not exist."""
    text = _CODE.sub("", document.read_text(encoding="utf-8"))
    named = [a or b for a, b in _INLINE.findall(text)]
    named += _HTML.findall(text) + _REFERENCE.findall(text)
    places = [unquote(each.partition("#")[0].partition("?")[0]) for each in named]
    files = [each for each in places if each and not re.match(r"[a-z][a-z0-9+.-]*:|//", each, re.I)]
    return [(document.parent / each).resolve() for each in dict.fromkeys(files)]
