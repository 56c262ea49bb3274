"""Flame graphs: what they show adds up, says where it comes from, and is the same every time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import perflab
from perflab.figures import FlameGraph, draw_view, flame_views, provenance, save_view
from perflab.figures.calls import layout, package, packages, tree
from perflab.figures.flame_graphs import (
    LETTER,
    LETTER_PX_OF_TEXT,
    Words,
    fitting,
    profile_graph,
)
from perflab.recordings import Run
from perflab.reports.pictures import save_all
from tests.figures.shown import one_line
from tests.synthetic import profiled_run

SVG = "{http://www.w3.org/2000/svg}"
CHAINS = {
    "main (run.py);send (chat/hub.py);dumps (json/__init__.py)": 30,
    "main (run.py);send (chat/hub.py)": 20,
    "main (run.py);<listcomp> (chat/a&b.py)": 50,
}
names = st.sampled_from(["a (x/y.py)", "b (x.py)", "c", "<d> (z/&.py)"])
profiles = st.dictionaries(
    st.lists(names, min_size=1, max_size=6).map(";".join), st.integers(1, 1000), min_size=1
)


def drawn(run: Run, name: str) -> FlameGraph:
    """Return a flame graph of a run by the name of its view."""
    (view,) = (view for view in flame_views(run) if view.name == name)
    found = draw_view(view, run)
    assert isinstance(found, FlameGraph)
    return found


def rectangles(svg: str) -> dict[str, tuple[float, float]]:
    """Return the tooltip of every frame, with left end and width of its rectangle."""
    found = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        title, shape = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None
        assert shape is not None
        found[str(title.text)] = (float(shape.attrib["x"]), float(shape.attrib["width"]))
    return found


@given(profiles)
def test_callees_lie_side_by_side_upon_their_caller(chains: dict[str, int]) -> None:
    placed = list(layout(tree(chains)))
    assert placed[0].width == 1
    for caller in placed:
        upon = [p for p in placed if caller.frame.callees.get(p.frame.name) is p.frame]
        ends = sorted((p.left, p.left + p.width) for p in upon)
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(ends))
        assert sum(p.width for p in upon) <= caller.width + 1e-9
        assert all(
            caller.left - 1e-9 <= left and right <= caller.left + caller.width + 1e-9
            for left, right in ends
        )


def test_widths_are_shares_and_tooltips_tell_the_numbers() -> None:
    graph = profile_graph(tree(CHAINS), Words("title", "subtitle", "footer", "samples"))
    found = rectangles(graph.svg())
    whole = found["all: 100 samples (100.00%)"][1]
    assert found["send (chat/hub.py): 50 samples (50.00%)"][1] == pytest.approx(whole / 2, abs=1)
    assert "<listcomp> (chat/a&b.py): 50 samples (50.00%)" in found


def test_packages_share_the_samples_between_them() -> None:
    shares = packages(tree(CHAINS))
    assert shares == pytest.approx({"chat": 0.7, "json": 0.3, "run.py": 0.0})
    assert list(shares) == ["chat", "json", "run.py"]
    assert package("send (uvicorn/server.py)") == "uvicorn"
    assert package("<module> (<frozen runpy>)") == "<frozen runpy>"


def test_a_difference_is_red_for_more_and_blue_for_less(tmp_path: Path) -> None:
    before, after = {"main;f": 50, "main;g": 50}, {"main;f": 80, "main;g": 20}
    run = profiled_run(tmp_path, {"a": before, "b": after}, seen_share={"a": 0.5, "b": 0.5})
    svg = drawn(run, "flame_difference_0").svg()
    colors = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        name = str(group.findtext(f"{SVG}title")).partition(":")[0]
        shape = group.find(f"{SVG}rect")
        assert shape is not None
        colors[name] = shape.attrib["fill"]
    red, green, blue = (int(colors["f"][i : i + 2], 16) for i in (1, 3, 5))
    assert red > max(green, blue)
    red, green, blue = (int(colors["g"][i : i + 2], 16) for i in (1, 3, 5))
    assert blue > max(red, green)
    assert colors["main"] == "#F4F4F4"
    assert "f: 25 to 40 % of the time (+15)" in svg


def test_a_name_never_leaves_its_rectangle() -> None:
    name = "serialize_and_send (chat/hub.py)"
    for width in range(0, 400, 7):
        text = fitting(name, width)
        assert len(text) * LETTER_PX_OF_TEXT <= max(0, width - 6) + 1e-9
        assert name.startswith(text.rstrip("…"))
    assert LETTER >= 0.602


def test_flame_graphs_are_saved_with_their_origin_byte_for_byte(tmp_path: Path) -> None:
    chains = {"a": CHAINS, "b": {**CHAINS, "main (run.py)": 7}}
    run = profiled_run(tmp_path / "run", chains)
    saved = {path.name: path for path in save_all(run, tmp_path / "one")}
    assert {"flame_0.svg", "flame_1.svg", "flame_difference_0.svg"} <= set(saved)
    views = [view for view in flame_views(run) if view.suits(run)]
    paths = [path for view in views for path in save_view(view, run, tmp_path / "two")]
    again = {path.name: path for path in paths}
    for name in ("flame_0.svg", "flame_1.svg", "flame_difference_0.svg", "flame_0.csv"):
        assert saved[name].read_bytes() == again[name].read_bytes()
    assert provenance(saved["flame_0.svg"])["runs"] == [run.run_id]
    svg = drawn(run, "flame_0").svg()
    assert run.run_id in svg
    assert "600 samples of 6 trials" in svg


def test_a_run_that_nobody_profiled_has_no_flame_graph(normal) -> None:
    assert not any(view.suits(normal) for view in flame_views(normal))
    words = one_line(perflab.draw(normal, "flame_0"))
    assert "hold nothing that this figure shows" in words
