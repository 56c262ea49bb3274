"""Whatever ``run.json`` holds, it is a consistent record or refused, soon and in little memory."""

from __future__ import annotations

import contextlib
import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflab.errors import RecordingError
from perflab.recordings import Run, RunRecord, remainder
from tests.synthetic import write_run

MIB = 2**20
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([-1, 0, 10**9, 2**63, 10**40, 1e308])
    | st.floats()
    | st.text()
    | st.sampled_from(["\ud800", "\x00", "../../etc", "x" * 10_000]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("runs"), blocks=2, requests=20)


@pytest.fixture
def words(run: Run) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(run.record.model_dump_json())
    return read


def load(folder: Path, content: str | bytes) -> RunRecord:
    folder.mkdir(exist_ok=True)
    given = content if isinstance(content, bytes) else content.encode(errors="surrogatepass")
    (folder / "run.json").write_bytes(given)
    return Run(folder).record


def assert_consistent(record: RunRecord) -> None:
    """What is done with a record everywhere works, and stays small."""
    assert RunRecord.model_validate_json(record.model_dump_json()) == record
    assert len(record.order) == record.blocks <= 10_000
    assert len(remainder(record, []).blocks) == record.blocks
    assert len(str(record)) < 10 * MIB


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=5000)
@given(document=ANYTHING)
def test_any_document_loads_as_a_consistent_record_or_is_refused(
    tmp_path: Path, document: Any
) -> None:
    with pytest.raises(RecordingError, match=r"run\.json"):
        load(tmp_path / "run", json.dumps(document))


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
    record = None
    with contextlib.suppress(RecordingError):
        record = load(tmp_path / "run", json.dumps(words))
    if record is not None:
        assert_consistent(record)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"schema_version": 6}', "\x00", "\ufeff"]
)
def test_a_damaged_record_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(RecordingError, match=r"run\.json"):
        load(tmp_path / "run", content)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("blocks", 10**9, "blocks: Input should be less than or equal to 10000"),
        ("blocks", 5, "order has 2 blocks, not 5"),
        ("order", [[], []], "order of block 0: is not each treatment once"),
        ("seed", -1, "seed: Input should be greater than or equal to 0"),
        ("seed", 10**40, "seed: Input should be less than or equal to"),
        ("schema_version", 0, "measure anew"),
        ("schema_version", True, "schema_version"),
        ("schema_version", 10**400, "measure anew"),
        ("run_id", "x" * 201, "run_id: String should have at most 200 characters"),
        ("superseded", list(range(100)), "and 97 more"),
        ("notes", {"loss": float("nan")}, "damaged"),
        ("title", "\ud800", "damaged"),
    ],
)
def test_an_absurd_value_is_refused_by_name(
    tmp_path: Path, words: dict[str, Any], field: str, value: Any, sentence: str
) -> None:
    with pytest.raises(RecordingError) as refused:
        load(tmp_path / "run", json.dumps({**words, field: value}))
    assert "run.json" in str(refused.value)
    assert sentence in str(refused.value)


def test_two_treatments_of_one_name_are_refused(tmp_path: Path, words: dict[str, Any]) -> None:
    treatments = [words["treatments"][0]] * 2
    with pytest.raises(RecordingError, match="two treatments have one name"):
        load(tmp_path / "run", json.dumps({**words, "treatments": treatments}))


BOMBS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "deep": lambda _: b'{"schema_version": 6, "notes": ' + b"[" * 10**6,
    "deep and closed": lambda _: b'{"schema_version": 6, "x": ' + b"[" * 100 + b"]" * 100 + b"}",
    "long": lambda _: b'{"title": "' + b"x" * (17 * MIB) + b'"}',
    "endless blanks": lambda _: b" " * (40 * MIB),
    "wide": lambda words: json.dumps({**words, "notes": {"all": [[]] * (4 * 10**6)}}).encode(),
    "wrong everywhere": lambda words: json.dumps({**words, "superseded": [1] * 190_000}).encode(),
    "unknown fields": lambda words: json.dumps(
        {**words, **{f"field{number}": 1 for number in range(190_000)}}
    ).encode(),
    "empty blocks": lambda words: json.dumps({**words, "order": [[]] * 190_000}).encode(),
    "a billion blocks": lambda words: json.dumps({**words, "blocks": 10**9}).encode(),
}
LOOK = """
import resource, sys, time
from pathlib import Path
from perflab.errors import RecordingError
from perflab.recordings import Run
for folder in sorted(Path(sys.argv[1]).iterdir()):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    try:
        Run(folder)
    except RecordingError as error:
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(held * 1024, time.process_time() - begin, error)
"""


def test_hostile_records_cost_little(tmp_path: Path, words: dict[str, Any]) -> None:
    for name, make in BOMBS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_bytes(make(words))
    done = subprocess.run(
        [sys.executable, "-c", LOOK, tmp_path], capture_output=True, text=True, timeout=60
    )
    told = done.stdout.splitlines()
    assert len(told) == len(BOMBS), done.stderr
    for name, line in zip(sorted(BOMBS), told, strict=True):
        held_bytes, took_s, sentence = line.split(" ", 2)
        assert f"{name}/run.json: " in sentence
        assert len(sentence) < 2000
        assert int(held_bytes) < 500 * MIB, name
        assert float(took_s) < 10, name
