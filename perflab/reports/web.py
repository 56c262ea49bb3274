"""Sections as one page of HTML that needs nothing else: pictures are inside, nothing is fetched."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

KINDS = {"svg": "image/svg+xml", "png": "image/png"}
# Figures are drawn for white paper: they keep it also where the page is dark.
STYLE = """
:root{color-scheme:light dark;--line:#8886;--soft:#8881}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;
overflow-wrap:break-word}
h1,h2,h3{line-height:1.25;margin:2rem 0 .5rem}
h1{font-size:1.6rem}h2{font-size:1.25rem}h3{font-size:1.05rem}
img{display:block;max-width:100%;height:auto;background:#fff;margin:1.5rem auto .25rem;
border-radius:4px}
em{font-size:.9rem}
.table{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid var(--line);padding:.3rem .6rem;text-align:left;
vertical-align:top;overflow-wrap:normal;min-width:4.5rem}
td:first-child{min-width:8rem}
th{background:var(--soft)}
blockquote{margin:1rem 0;padding:.1rem 1rem;border-left:4px solid #c60;background:var(--soft)}
pre{background:var(--soft);padding:.75rem;white-space:pre-wrap;overflow-wrap:anywhere}
section+section{border-top:2px solid var(--line);margin-top:3rem}
@media print{body{max-width:none}}
"""


def page(title: str, sections: Iterable[tuple[str, Mapping[str, bytes]]]) -> str:
    """Return a page of sections in Markdown, with their pictures inside.

    Parameters
    ----------
    sections : iterable of (str, mapping)
        Each with the bytes of its pictures by their links; a picture that is not among them becomes
        its text.
    """
    body = "".join(section_html(text, pictures) for text, pictures in sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"{body}</body>\n</html>\n"
    )


def section_html(text: str, pictures: Mapping[str, bytes]) -> str:
    """Return the HTML of a section."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("image", _image(pictures))
    parser.add_render_rule("table_open", lambda *_: "<div class='table'><table>\n")
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return f"<section>\n{parser.render(text)}</section>\n"


def _image(pictures: Mapping[str, bytes]) -> Any:
    def render(
        self: RendererHTML,
        tokens: Sequence[Token],
        place: int,
        options: OptionsDict,
        environment: Any,
    ) -> str:
        token = tokens[place]
        alt = self.renderInlineAsText(token.children or [], options, environment)
        link = str(token.attrs["src"])
        content = pictures.get(link)
        if content is None:
            return html.escape(alt)
        kind = KINDS[link.rpartition(".")[2]]
        data = base64.b64encode(content).decode()
        return f'<img alt="{html.escape(alt)}" src="data:{kind};base64,{data}">'

    return render
