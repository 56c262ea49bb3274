"""Figures are drawn from their files alone, and carry their origin in every format."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib as mpl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from PIL import Image

import perflab
from perflab.errors import ParameterError
from perflab.figures import CAUSES, GENERAL_VIEWS, PROFILE, THROUGHPUT, provenance, save_view
from perflab.figures.export import ProvenanceError, rendered
from perflab.figures.theme import styles_of
from perflab.figures.view import read_csv, reread, to_csv
from perflab.recordings import Run
from perflab.reports.figures import views_of
from tests.figures.conftest import OF_A_DATABASE
from tests.figures.shown import one_line
from tests.support.synthetic import profiled_run

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))
numbers = st.floats(allow_nan=True, allow_infinity=True, width=32)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory) -> Run:
    chains = {"a": {"main (run.py);f (x/y.py)": 3, "main (run.py)": 7}, "b": {"main (run.py)": 5}}
    return profiled_run(tmp_path_factory.mktemp("profiled"), chains)


# Every view of a run with much data.
RICH = {
    "normal": OF_A_DATABASE,
    "clients": ["client_cost"],
    "codecs": ["codec_cost"],
    "copies": ["known_effects"],
    "profiled": ["profile"],
}


@pytest.mark.slow
@pytest.mark.parametrize("case", RICH)
def test_every_figure_is_drawn_from_its_file_alone(case, request, tmp_path) -> None:
    run = request.getfixturevalue(case)
    for view in (view for view in views_of(run) if view.name in RICH[case]):
        svg, table = save_view(view, run, tmp_path, ["svg"])
        saved = read_csv(table.read_text())
        (_, again), _ = rendered(replace(view, table=lambda *_, saved=saved: saved), run, ["svg"])
        assert again == svg.read_bytes(), view.name


@given(st.lists(st.tuples(texts, numbers, st.integers(-(10**15), 10**15)), max_size=8))
def test_texts_and_numbers_come_back_from_a_file(rows: list[tuple[str, float, int]]) -> None:
    table = pd.DataFrame(rows, columns=["text", "number", "count"])
    read = read_csv(to_csv(table))
    assert list(read["text"]) == list(table["text"])
    expected = [float(f"{number:.6g}") for number in table["number"]]
    assert list(read["number"]) == pytest.approx(expected, rel=1e-9, nan_ok=True)
    assert list(read["count"]) == list(table["count"])
    assert_frame_equal(reread(read), read)


def test_a_level_that_looks_like_a_number_stays_a_text() -> None:
    table = pd.DataFrame({"level": ["200", "", "nan"], "value": [1.5, math.nan, 3.0]})
    assert_frame_equal(reread(table), table)
    with pytest.raises(TypeError, match="True is no text and no number"):
        to_csv(pd.DataFrame({"joining": [True]}))


def test_a_wrong_name_is_answered_with_the_nearest_one(normal) -> None:
    with pytest.raises(ParameterError, match=r"'trough.*did you mean 'throughput'.*flush_cost"):
        perflab.draw(normal, "troughput")
    assert perflab.draw(normal, "throughput").axes


def test_a_view_of_runs_of_another_kind_says_so_and_is_not_among_a_runs(no_database) -> None:
    words = one_line(perflab.draw(no_database, "flush_cost"))
    assert "The valid trials of the run hold nothing that this figure shows." in words
    assert "flush_cost" not in {view.name for view in views_of(no_database)}


def test_a_run_of_a_system_that_is_not_installed_has_the_general_figures(normal, empty) -> None:
    foreign = Run(normal.path)
    update = {"experiment": "of_others", "system": "not_here"}
    foreign.record = normal.record.model_copy(update=update)
    names = [view.name for view in views_of(foreign)]
    assert names == [view.name for view in GENERAL_VIEWS if view not in (CAUSES, PROFILE)]
    assert set(names) == set(OF_A_DATABASE)
    bare = Run(empty.path)
    bare.record = empty.record.model_copy(update={**update, "contrasts": []})
    assert views_of(bare) == []


def test_settings_of_the_notebook_do_not_change_the_bytes(normal, tmp_path) -> None:
    plain = save_view(THROUGHPUT, normal, tmp_path / "a")
    with mpl.rc_context({"font.size": 20, "svg.fonttype": "none", "savefig.dpi": 30}):
        odd = save_view(THROUGHPUT, normal, tmp_path / "b")
    assert [p.read_bytes() for p in plain] == [p.read_bytes() for p in odd]


@pytest.mark.promise
def test_the_last_bits_of_a_coordinate_do_not_change_the_bytes(normal, tmp_path) -> None:
    def as_on_another_processor(table, page):
        figure = THROUGHPUT.draw(table, page)
        for axes in figure.axes:
            place = axes.get_position()
            axes.set_position([place.x0 + 1e-15, place.y0, place.width, place.height + 1e-15])
        return figure

    here = save_view(THROUGHPUT, normal, tmp_path / "a", ["svg"])
    there = save_view(
        replace(THROUGHPUT, draw=as_on_another_processor), normal, tmp_path / "b", ["svg"]
    )
    assert [p.read_bytes() for p in here] == [p.read_bytes() for p in there]


@pytest.mark.promise
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
    colors = [style.color for style in styles_of(normal.record).values()]
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
