"""A damaged trial counts for nothing and is named; a record is consistent or refused."""

from __future__ import annotations

import contextlib
import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflab.errors import RecordingError
from perflab.recordings import Run, RunRecord, RunWriter, files
from perflab.recordings.store import remainder
from tests.support.synthetic import write_run

VICTIM, OTHER = "b001-p00-a0", "b001-p01-a0"
FILES = ("trial.parquet", "requests.parquet", "samples.parquet", "waits.parquet", files.FILE)
Harm = Callable[[Path], object]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("whole"), blocks=2, requests=60)


@pytest.fixture
def folder(whole: Run, tmp_path: Path) -> Path:
    """The folder of a trial that a test may damage."""
    shutil.copytree(whole.path, tmp_path / "run")
    return tmp_path / "run" / "trials" / VICTIM


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def flip_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[300] ^= 0xFF
    file.write_bytes(bytes(content))


def change_row(folder: Path, **values: Any) -> None:
    """Write other values into a trial's row, with a manifest that fits."""
    file = folder / "trial.parquet"
    table = pq.read_table(file)
    for name, value in values.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array([value], table.schema.field(name).type))
    pq.write_table(table, file)
    (folder / files.FILE).unlink()
    (folder / files.FILE).write_bytes(files.describe(folder))


def assert_left_out(folder: Path, *words: str) -> None:
    """Check that the trial is in no table and no count, and is named as damaged."""
    run = Run(folder.parent.parent)
    (problem,) = run.problems
    for word in (f"trial {folder.name} is damaged and left out", *words):
        assert word in problem
    for table in (
        run.trials(),
        run.valid_trials(),
        run.requests(),
        run.table("samples"),
        run.table("waits"),
    ):
        assert table["trial_id"].nunique() == 3
        assert folder.name not in set(table["trial_id"])
    assert run.problems == [problem]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", [cut_short, flip_a_bit, Path.unlink])
@pytest.mark.promise
def test_a_file_that_is_not_what_was_committed(folder: Path, name: str, harm: Harm) -> None:
    harm(folder / name)
    assert_left_out(folder, name)


def test_a_table_that_is_too_large_to_be_read_at_once_has_its_length(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "READ_AT_ONCE_BYTES", 10)
    shutil.copy(folder.with_name(OTHER) / "requests.parquet", folder)
    assert_left_out(folder, "requests.parquet", "bytes, ")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"treatment": "nobody"}, "nobody"),
        ({"state": "splendid"}, "splendid"),
        ({"position": 7}, "trial id"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_row_that_is_not_of_its_place_or_run(
    folder: Path, values: dict[str, Any], words: str
) -> None:
    change_row(folder, **values)
    assert_left_out(folder, words)


def test_a_link_that_waits_where_the_record_is_replaced_is_not_written_through(
    folder: Path, tmp_path: Path
) -> None:
    run, precious = folder.parent.parent, tmp_path / "precious"
    precious.write_text("mine")
    (run / ".tmp-run.json").symlink_to(precious)
    (run / ".tmp-folder").symlink_to(tmp_path)
    writer = RunWriter.reopen(run)
    assert precious.exists()
    (run / ".tmp-run.json").symlink_to(precious)
    writer.update(reason="a test")
    assert precious.read_text() == "mine"
    assert json.loads((run / "run.json").read_text())["reason"] == "a test"


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([-1, 10**9, 2**63, 10**40, 1e308])
    | st.floats()
    | st.text()
    | st.sampled_from(["\ud800", "\x00", "../../etc"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.fixture(scope="module")
def words(whole: Run) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(whole.record.model_dump_json())
    return read


def load(folder: Path, content: str) -> RunRecord:
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_bytes(content.encode(errors="surrogatepass"))
    return Run(folder).record


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=5000, max_examples=150
)
@given(data=st.data(), value=ANYTHING)
def test_any_field_of_a_record_is_right_or_refused(
    tmp_path: Path, words: dict[str, Any], data: st.DataObject, value: Any
) -> None:
    place: Any = (words := copy.deepcopy(words))
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = value
    with contextlib.suppress(RecordingError):
        record = load(tmp_path / "run", json.dumps(words))
        assert RunRecord.model_validate_json(record.model_dump_json()) == record
        assert len(remainder(record, [])[0]) == record.blocks == len(record.order)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"schema_version": 6}', "\ufeff", '{"a": ' + "[" * 10**6]
)
def test_a_damaged_record_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(RecordingError, match=r"run\.json"):
        load(tmp_path / "run", content)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("blocks", 10**9, "blocks: Input should be less than or equal to 10000"),
        ("blocks", 5, "order has 2 blocks, not 5"),
        ("order", [[], []], "order of block 0: it does not hold each treatment once"),
        ("design", {"kind": "auto"}, "design is auto; a run has trials or slices"),
        ("design", {"kind": "slices", "slice_ms": 1}, "slice_ms: Input should be greater than or"),
        ("schema_version", 0, "measure anew"),
        ("superseded", list(range(100)), "and 97 more"),
        ("notes", {"loss": float("nan")}, "damaged"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_absurd_value_is_refused_by_name(
    tmp_path: Path, words: dict[str, Any], field: str, value: Any, sentence: str
) -> None:
    with pytest.raises(RecordingError) as refused:
        load(tmp_path / "run", json.dumps({**words, field: value}))
    assert "run.json" in str(refused.value)
    assert sentence in str(refused.value)
