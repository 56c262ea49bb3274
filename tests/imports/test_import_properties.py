"""Parsers of other tools' files meet anything, and answer with numbers or a refusal."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflab.errors import ImportRefused
from perflab.imports.formats import FORMATS, format_of
from perflab.imports.instants import epoch_ns
from perflab.imports.told import RequestRows, share_name
from perflab.imports.units import number, time_ms
from tests.examples import examples

DATA = Path(__file__).parent / "data"
# Functions that a test is given do not change between examples.
ONCE = [HealthCheck.function_scoped_fixture]
MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3, "h": 3.6e6}
SAMPLES = sorted(
    path.name
    for path in DATA.iterdir()
    if path.suffix != ".md" and "hist" not in path.name and "_failures" not in path.name
    if "_history" not in path.name
)


@settings(max_examples=examples(200), deadline=None)
@given(st.floats(0, 1e9), st.sampled_from(sorted(MS)), st.integers(0, 6))
def test_a_time_with_its_unit_is_read_back(value: float, unit: str, digits: int) -> None:
    text = f"{value:.{digits}f}"
    assert time_ms(text + unit) == pytest.approx(float(text) * MS[unit])


@settings(max_examples=examples(300), deadline=None)
@given(st.text(max_size=12))
def test_any_text_is_a_finite_number_or_refused(text: str) -> None:
    for parse in (number, time_ms):
        try:
            found = parse(text)
        except ValueError:
            continue
        assert math.isfinite(found) or "nan" in text.lower()


@settings(max_examples=examples(200), deadline=None)
@given(st.datetimes(), st.integers(0, 999_999_999))
def test_an_instant_keeps_its_nanoseconds(at: object, ns: int) -> None:
    text = f"{at:%Y-%m-%dT%H:%M:%S}".zfill(19)
    try:
        whole = epoch_ns(f"{text}Z")
    except (ValueError, OverflowError):
        return
    assert epoch_ns(f"{text}.{ns:09d}Z") - whole == ns
    assert epoch_ns(f"{text}.{ns:09d}+00:00") - whole == ns


@settings(max_examples=examples(60), deadline=None, suppress_health_check=ONCE)
@given(name=st.sampled_from(SAMPLES), data=st.data())
def test_a_file_with_any_bytes_changed_is_read_or_refused(
    name: str, data: st.DataObject, tmp_path: Path
) -> None:
    whole = bytearray((DATA / name).read_bytes())
    begin = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(begin, min(len(whole), begin + 20)))
    whole[begin:end] = data.draw(st.binary(max_size=20))
    path = tmp_path / name
    path.write_bytes(bytes(whole))
    try:
        found = format_of(path).reads([path])
    except ImportRefused:
        return
    assert all(value >= 0 or math.isnan(value) for value in found.times_ms.values())
    assert found.requests is None or found.requests >= 0


@settings(max_examples=examples(60), deadline=None, suppress_health_check=ONCE)
@given(content=st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_refused_as_the_output_of_any_tool(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "any"
    path.write_bytes(content)
    for form in FORMATS:
        with pytest.raises(ImportRefused):
            form.reads([path])


@settings(max_examples=examples(50), deadline=None, suppress_health_check=ONCE)
@given(times=st.lists(st.floats(0.001, 1e6), min_size=1, max_size=400))
def test_requests_of_k6_come_back_as_they_were_written(times: list[float], tmp_path: Path) -> None:
    path = tmp_path / "k6.jsonl"
    lines = [
        {
            "metric": "http_req_duration",
            "type": "Point",
            "data": {
                "time": f"2026-11-21T10:30:{n % 60:02d}.{n:09d}+01:00",
                "value": took,
                "tags": {"status": "200", "expected_response": "true"},
            },
        }
        for n, took in enumerate(times)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    found = format_of(path, "k6").reads([path])
    assert found.requests == len(times)
    assert found.rows is not None
    table = found.rows.to_pandas()
    assert (table["end_ms"] - table["start_ms"]).to_numpy() == pytest.approx(times, abs=1e-3)
    assert found.times_ms["max"] == pytest.approx(max(times), abs=1e-3)
    if len(times) >= 368:
        assert found.times_ms["p99"] == pytest.approx(np.percentile(times, 99), abs=1e-3)
    else:
        assert math.isnan(found.times_ms["p99"])


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.text(max_size=300), min_size=1, max_size=50))
def test_outcomes_of_any_kind_take_bounded_room(outcomes: list[str]) -> None:
    rows = RequestRows()
    for text in outcomes:
        rows.add(0.0, math.nan, 1.0, math.nan, text, failed=False)
    told = rows.table()["outcome"].to_pylist()
    assert told == [text[:200] for text in outcomes]


def test_names_of_percentiles_fit_columns() -> None:
    assert [share_name(each) for each in (50, 99.0, 99.9, 99.999)] == [
        "p50", "p99", "p99_9", "p99_999",
    ]  # fmt: skip
