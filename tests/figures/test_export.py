"""Saved figures say where they come from and are rebuilt byte for byte."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from PIL import Image

from perflab.figures import THROUGHPUT, provenance, save_view
from perflab.figures.export import ProvenanceError
from perflab.figures.theme import looks_of


def test_settings_of_the_notebook_do_not_change_the_bytes(normal, tmp_path) -> None:
    plain = save_view(THROUGHPUT, normal, tmp_path / "a")
    with mpl.rc_context({"font.size": 20, "svg.fonttype": "none", "savefig.dpi": 30}):
        odd = save_view(THROUGHPUT, normal, tmp_path / "b")
    assert [p.read_bytes() for p in plain] == [p.read_bytes() for p in odd]


def test_both_formats_carry_the_same_complete_origin(normal, tmp_path) -> None:
    svg, png, _ = save_view(THROUGHPUT, normal, tmp_path)
    origin = provenance(svg)
    assert origin == provenance(png)
    record = normal.record
    assert origin["runs"] == [normal.run_id]
    assert origin["experiment"] == record.experiment
    assert origin["seed"] == record.seed
    assert origin["parameters"] == json.loads(json.dumps(record.parameters))
    assert set(origin["n"]) == {treatment.name for treatment in record.treatments}
    assert {"commit", "dirty", "perflab", "backend", "network_path"} <= set(origin)


def test_a_png_keeps_white_and_the_treatments_colours_exact(normal, tmp_path) -> None:
    _, png, _ = save_view(THROUGHPUT, normal, tmp_path)
    with Image.open(png) as picture:
        shown = {color for _, color in picture.convert("RGB").getcolors(1 << 20)}
        assert picture.mode == "P"
    colors = [look.color for look in looks_of(normal.record).values()]
    for name in (*colors, "white"):
        assert tuple(round(255 * part) for part in mpl.colors.to_rgb(name)) in shown


def test_letters_in_an_svg_are_paths_and_a_pdf_has_no_date(normal, tmp_path) -> None:
    svg, pdf, _ = save_view(THROUGHPUT, normal, tmp_path, ["svg", "pdf"])
    assert pdf.read_bytes().startswith(b"%PDF")
    assert b"CreationDate" not in pdf.read_bytes()
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(svg).iter()}
    assert "path" in tags
    assert "text" not in tags


@pytest.mark.parametrize("name", ["x.png", "broken.svg", "broken.png", "missing.svg", "table.csv"])
def test_a_file_that_is_no_figure_of_the_lab_is_named_in_the_error(tmp_path, name) -> None:
    Image.new("RGB", (2, 2)).save(tmp_path / "x.png")
    for file in ("broken.svg", "broken.png", "table.csv"):
        (tmp_path / file).write_text("not a figure")
    with pytest.raises(ProvenanceError, match=name):
        provenance(tmp_path / name)
