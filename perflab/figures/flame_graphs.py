"""Flame graphs as SVG: a rectangle per function upon its callers, as wide as its samples.

Source: B. Gregg, The flame graph, Communications of the ACM 59(6), 2016; in a difference the
widths are those of the second profile and the colours tell what changed.

Same samples, same bytes: no dates, no random colours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from perflab.figures.calls import Frame, Placed, layout, package, packages
from perflab.figures.theme import INK, LIGHT, MUTED, Theme

WIDTH_PX, MARGIN_PX, ROW_PX = 1200.0, 10.0, 17.0
INNER_PX = WIDTH_PX - 2 * MARGIN_PX
TITLE_PX, TEXT_PX, SMALL_PX = 15.0, 11.0, 10.5
LINE = 1.4
# DejaVu Sans Mono's letters are 0.602 of its size; other monospaced fonts are hardly wider.
LETTER = 0.61
LETTER_PX_OF_TEXT = LETTER * TEXT_PX
THINNEST_PX = 0.4
SHORTEST_TEXT = 3
FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
# Paul Tol's light scheme: dark letters stay readable on all of them.
COLORS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#C5B0D5")
OTHERS = "#DDDDDD"
# Full colours are light enough for dark letters.
MORE, LESS, SAME = (228, 112, 96), (92, 152, 214), (244, 244, 244)

Paint = Callable[[Frame], str]
Key = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class FlameGraph:
    """A flame graph that shows itself in a notebook."""

    title: str
    height_px: float
    shapes: tuple[str, ...]

    def svg(
        self,
        origin: Mapping[str, object] | None = None,
        theme: Theme = LIGHT,
        *,
        transparent: bool = False,
    ) -> str:
        """Return the whole file; :func:`perflab.figures.provenance` reads ``origin`` back."""
        background = "none" if transparent else theme.background
        head = _opening(self.height_px, self.title, origin or {}, background)
        shapes = [_inked(shape, theme) for shape in self.shapes]
        return "\n".join([head, *shapes, "</svg>"]) + "\n"

    def _repr_svg_(self) -> str:
        return self.svg()


@dataclass(frozen=True)
class Words:
    """The words around a graph; ``unit`` is that of the weights, lines of text are kept apart."""

    title: str
    subtitle: str
    footer: str
    unit: str


def profile_graph(root: Frame, words: Words) -> FlameGraph:
    """Return the graph of one profile, coloured by package, the outermost callers below.

    ``root`` comes from :func:`perflab.figures.calls.tree`.
    """
    shares = packages(root)
    colors = dict(zip(shares, COLORS, strict=False))
    key = [(color, f"{name} {shares[name]:.0%}") for name, color in colors.items()]
    if len(shares) > len(colors):
        key.append((OTHERS, "others"))

    def paint(frame: Frame) -> str:
        return colors.get(package(frame.name), OTHERS) if frame is not root else OTHERS

    def tell(frame: Frame) -> str:
        share = frame.weight / root.weight
        return f"{frame.name}: {frame.weight:,.6g} {words.unit} ({share:.2%})"

    return _drawn(root, words, key, paint, tell)


def difference_graph(root: Frame, words: Words) -> FlameGraph:
    """Return the graph of a second profile, red where it has more than the first, blue for less.

    ``root`` comes from :func:`perflab.figures.calls.tree` with ``before``. What the second profile
    has no longer has no width; tables tell of it.
    """
    placed = list(layout(root))
    largest = max((abs(each.frame.change) for each in placed), default=0.0) or 1.0

    def shade(change: float) -> str:
        strength = min(1.0, abs(change) / largest) ** 0.5
        end = MORE if change > 0 else LESS
        mixed = [round(a + (b - a) * strength) for a, b in zip(SAME, end, strict=True)]
        return "#" + "".join(f"{part:02X}" for part in mixed)

    key = [
        (shade(-largest), f"-{largest:.3g} {words.unit}"),
        (shade(-largest / 4), f"-{largest / 4:.3g}"),
        (shade(0.0), "no change"),
        (shade(largest / 4), f"+{largest / 4:.3g}"),
        (shade(largest), f"+{largest:.3g} {words.unit}"),
    ]

    def tell(frame: Frame) -> str:
        was = frame.weight - frame.change
        return f"{frame.name}: {was:.3g} to {frame.weight:.3g} {words.unit} ({frame.change:+.3g})"

    return _drawn(root, words, key, lambda frame: shade(frame.change), tell)


def _drawn(
    root: Frame,
    words: Words,
    key: Key,
    paint: Paint,
    tell: Callable[[Frame], str],
) -> FlameGraph:
    # What is too thin to be seen is left out; the tables have it.
    placed = [each for each in layout(root) if each.width * INNER_PX >= THINNEST_PX]
    y = MARGIN_PX
    parts = []
    for line in words.title.split("\n"):
        y += TITLE_PX * LINE
        parts.append(_text(MARGIN_PX, y, line, TITLE_PX, INK, "bold"))
    for line in words.subtitle.split("\n"):
        y += SMALL_PX * LINE
        parts.append(_text(MARGIN_PX, y, line, SMALL_PX, MUTED))
    y, drawn_key = _key(key, y + 8)
    floor = y + 10 + ROW_PX * (1 + max((each.depth for each in placed), default=0))
    frames = [_rectangle(each, floor, paint(each.frame), tell(each.frame)) for each in placed]
    y = floor + 6
    foot = []
    for line in words.footer.split("\n"):
        y += SMALL_PX * LINE
        foot.append(_text(MARGIN_PX, y, line, SMALL_PX, MUTED))
    return FlameGraph(words.title, y + MARGIN_PX, (*parts, *drawn_key, *frames, *foot))


def _opening(height: float, title: str, origin: Mapping[str, object], background: str) -> str:
    described = escape(json.dumps(origin, sort_keys=True, default=str), quote=False)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH_PX:g}" height="{height:.0f}" \
viewBox="0 0 {WIDTH_PX:g} {height:.0f}" font-family="{FONT}" style="max-width:100%;height:auto">
<title>{escape(title)}</title>
<metadata><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" \
xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:Description>\
<dc:description>{described}</dc:description></rdf:Description></rdf:RDF></metadata>
<rect width="100%" height="100%" fill="{background}"/>"""


def _inked(shape: str, theme: Theme) -> str:
    """Return a shape in the theme's ink; names in frames stay dark, as frames stay light."""
    if theme is LIGHT or not shape.startswith("<text"):
        return shape
    return shape.replace(INK, theme.ink).replace(MUTED, theme.muted)


def _key(key: Key, y: float) -> tuple[float, list[str]]:
    """Return the y below the key, and its parts, in as many lines as it needs."""
    x, parts = MARGIN_PX, []
    for color, label in key:
        width = 12 + 6 + len(label) * LETTER * SMALL_PX + 16
        if x > MARGIN_PX and x + width > WIDTH_PX:
            x, y = MARGIN_PX, y + SMALL_PX * LINE + 3
        parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="12" height="12" fill="{color}"/>')
        parts.append(_text(x + 18, y + SMALL_PX, label, SMALL_PX, INK))
        x += width
    return y + 12, parts


def _rectangle(placed: Placed, floor: float, color: str, told: str) -> str:
    x = MARGIN_PX + placed.left * INNER_PX
    width = placed.width * INNER_PX
    y = floor - ROW_PX * (placed.depth + 1)
    shape = (
        f'<rect x="{x:.2f}" y="{y:.1f}" width="{max(width - 0.5, 0.3):.2f}" '
        f'height="{ROW_PX - 1:g}" rx="1" fill="{color}"/>'
    )
    text = fitting(placed.frame.name, width)
    written = _text(x + 3, y + ROW_PX - 5, text, TEXT_PX, INK) if text else ""
    return f"<g><title>{escape(told)}</title>{shape}{written}</g>"


def fitting(name: str, width_px: float) -> str:
    """Return as much of a name as fits; nothing where that would be less than three letters."""
    room = int((width_px - 6) / LETTER_PX_OF_TEXT)
    if len(name) <= room:
        return name
    # Without its file first: that is in the tooltip.
    short = name.partition(" (")[0]
    if len(short) <= room:
        return short
    return f"{short[: room - 1]}…" if room >= SHORTEST_TEXT else ""


def _text(x: float, y: float, text: str, size: float, color: str, weight: str = "") -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    return (
        f'<text x="{x:.2f}" y="{y:.1f}" font-size="{size:g}" fill="{color}"{bold} '
        f'xml:space="preserve">{escape(text)}</text>'
    )
