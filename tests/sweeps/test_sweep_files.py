"""The grammar of sweep files: every mistake is named with its place before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.errors import ParameterError
from perflab.paths import project_root
from perflab.sweeps.cells import Cell, Sweep, open_sweep, read_sweep
from perflab.systems import experiment
from tests.support.examples import examples
from tests.systems.custom.test_variants import two_revisions

ECHO = "cells:\n  - notebook: client_overhead\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "some.yaml"
    path.write_text(text)
    return path


def opened(folder: Path, text: str) -> Sweep:
    return open_sweep(written(folder, text))


def problems_of(folder: Path, text: str) -> list[str]:
    """Return the problems of a file."""
    with pytest.raises(ParameterError, match=r"some\.yaml") as refused:
        open_sweep(written(folder, text))
    return refused.value.problems


def values(sweep: Sweep, *names: str) -> list[tuple[object, ...]]:
    return [tuple(cell.parameters[name] for name in names) for cell in sweep.cells]


def test_a_grid_is_every_combination_and_a_zip_goes_together(tmp_path: Path) -> None:
    sweep = opened(
        tmp_path,
        ECHO + "    grid: {delay_ms: [1, 2], blocks: [3]}\n"
        "    zip: {body_bytes: [10, 20], warmup_s: [0.1, 0.2]}\n",
    )
    assert values(sweep, "delay_ms", "blocks", "body_bytes", "warmup_s") == [
        (1.0, 3, 10, 0.1), (1.0, 3, 20, 0.2), (2.0, 3, 10, 0.1), (2.0, 3, 20, 0.2),
    ]  # fmt: skip


@pytest.mark.promise
def test_a_cell_of_a_users_service_measures_that_service_with_all_of_its_file(
    tmp_path: Path,
) -> None:
    shop = two_revisions(tmp_path / "shop", ("one.py", "1"), ("two.py", "2"))
    file = shop / "perflab.toml"
    command = "python3 -m http.server {port} --bind 127.0.0.1"
    file.write_text(f"[service]\ncommand = '{command}'\n[load]\nusers = 3\n")
    own = {"project": str(file), "against": "v1", "path": "/two.py"}
    sweep = opened(
        tmp_path,
        "cells:\n  - notebook: custom_service\n"
        f"    parameters: {json.dumps(own)}\n    grid: {{warmup_s: [0.1, 0.2]}}\n",
    )
    custom = experiment("custom_service")
    for cell, warmup_s in zip(sweep.cells, (0.1, 0.2), strict=True):
        asked = custom.check({**own, "warmup_s": warmup_s})
        assert custom.check(cell.parameters) == asked
        assert "against=v1" in cell.label


def test_a_cell_keeps_its_id_when_lines_move_and_loses_it_when_it_asks_otherwise(
    tmp_path: Path,
) -> None:
    def ids(text: str) -> list[str]:
        return [cell.id for cell in opened(tmp_path, text).cells]

    one = ids(ECHO + "    parameters: {blocks: 2, delay_ms: 1}\n")
    assert (
        ids("# moved\n\n" + ECHO + "    parameters:\n      delay_ms: 1.0\n      blocks: 2\n") == one
    )
    assert ids(ECHO + "    parameters: {blocks: 3, delay_ms: 1}\n") != one


WRONG_FORM = """\
titel: a
parameters: {backend: process}
cells:
  - notebook: client_overhead
    grid:
      rate: [50]
  - notebook: sync_vs_async
    grid:
      workers: []
      resume: [x]
    zip: {pool_size: [1, 2]}
"""
WRONG_PARAMETERS = """\
parameters: {backend: process}
cells:
  - notebook: client_overhead
    parameters: {blocks: 0}
    grid:
      dealy_ms: [3]
      body_bytes: [10, -4]
  - notebook: client_overhed
"""
EXPECTED = {
    WRONG_FORM: (
        "titel: is not known here (did you mean 'title'?); a sweep file has: title, retries,",
        "cells.1.grid.workers: List should have at least 1 item",
        "cells.1.grid.resume: is no parameter of cells",
    ),
    WRONG_PARAMETERS: (
        "cells.0: client_overhead: blocks = 0",
        "cells.0: client_overhead: unknown parameter 'dealy_ms' (did you mean 'delay_ms'?)",
        "cells.0: client_overhead: body_bytes = -4",
        "cells.1: no experiment 'client_overhed'",
    ),
}


@pytest.mark.parametrize("text", EXPECTED, ids=["form", "parameters"])
def test_all_mistakes_are_told_at_once_each_with_its_place(tmp_path: Path, text: str) -> None:
    problems = problems_of(tmp_path, text)
    for expected in EXPECTED[text]:
        assert any(problem.startswith(expected) for problem in problems), (expected, problems)
    assert len(problems) == len(EXPECTED[text])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("retries: 1\nretries: 2\n", "'retries' is no word, or stands here twice"),
        ("cells: &a [*a]\n", "recursive"),
        ("title: a\n---\ntitle: b\n", "another document"),
        ("title: " + "[" * 4000 + "]" * 4000 + "\n", "nested too deeply"),
        ("", "a sweep is a table"),
        (ECHO + "    parameters: {delay_ms: 1:30}\n", "delay_ms = '1:30': "),
        (ECHO + f"    grid: {{blocks: {[*range(100)]}, delay_ms: {[*range(100)]}}}\n",
         "10,000 cells are asked for"),
        (ECHO + "    zip: {blocks: [1, 2], delay_ms: [1]}\n", "blocks 2, delay_ms 1"),
        (ECHO + "    parameters: {blocks: 2}\n    grid: {blocks: [1]}\n", "is given twice"),
        (ECHO + "    grid: {blocks: [2, 2]}\n", "asked for already"),
        ("parameters: {wokers: 1}\n" + ECHO, "no notebook of the sweep has 'wokers'"),
    ],
    ids=lambda value: str(value)[:24],
)  # fmt: skip
def test_a_mistake_is_told(tmp_path: Path, text: str, expected: str) -> None:
    problems = problems_of(tmp_path, text)
    assert any(expected in problem for problem in problems), problems


def test_numbers_are_typed_as_they_are_written(tmp_path: Path) -> None:
    sweep = opened(tmp_path, ECHO + "    parameters: {body_bytes: 1e5, blocks: 012, delay_ms: 2}\n")
    assert values(sweep, "body_bytes", "blocks", "delay_ms") == [(100_000, 12, 2.0)]
    assert isinstance(sweep.cells[0].parameters["body_bytes"], int)


@pytest.mark.parametrize("path", sorted((project_root() / "notebooks/sweeps").glob("*.yaml")),
                         ids=lambda path: path.stem)  # fmt: skip
def test_a_sweep_that_is_shipped_can_be_started(path: Path) -> None:
    assert open_sweep(path).cells


words = st.sampled_from(
    ["title", "retries", "cells", "notebook", "grid", "zip", "client_overhead", "blocks",
     "no", "0123", "1e5", "-3", "0.5", "null", "'a'", "x"]
)  # fmt: skip
trees = st.recursive(
    words,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.builds("{}: {}".format, words, inner), max_size=4).map(
            lambda pairs: "{" + ", ".join(pairs) + "}"
        )
    ),
    max_leaves=12,
)
pairs_of_words = st.lists(st.builds("{}: {}\n".format, words, trees), max_size=5)
cells_of_trees = st.builds(
    "retries: 1\ncells: [{{notebook: client_overhead, {}: {}}}]\n".format,
    st.sampled_from(["grid", "zip"]),
    trees,
)
files = pairs_of_words.map("".join) | cells_of_trees | st.text(max_size=40)


@settings(max_examples=examples(80), deadline=None)
@given(text=files)
def test_a_file_is_read_or_refused_by_its_name(text: str) -> None:
    try:
        cells = read_sweep(Path("some.yaml"), text.encode("utf-8", "surrogatepass")).cells
    except ParameterError as error:
        cells, said = (), str(error)
    else:
        said = ""
    assert cells or "some.yaml" in said


def test_a_cell_is_labelled_with_numbers_as_people_write_them() -> None:
    parameters = {"rate": 200.0, "delay_ms": 0.5, "blocks": 4}
    cell = Cell("c1", "client_overhead", parameters, parameters, 8)
    assert cell.label == "client_overhead rate=200 delay_ms=0.5 blocks=4"
