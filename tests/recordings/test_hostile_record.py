"""Whatever ``run.json`` holds, it is a consistent record or refused."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflab.errors import RecordingError
from perflab.recordings import Run, RunRecord
from perflab.recordings.store import remainder
from tests.support.synthetic import write_run

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
def words(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    run = write_run(tmp_path_factory.mktemp("runs"), blocks=2, requests=20)
    read: dict[str, Any] = json.loads(run.record.model_dump_json())
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
