"""Written instruments are read again with their settings, or refused."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from perflab.errors import ExperimentError
from perflab.instruments import STANDARD, Profiler, Requests
from perflab.instruments.instrument import NamedInstrument, from_written
from perflab.systems.chat.streams import Streams


class Holder(BaseModel):
    """A model with instruments, as a treatment is."""

    instruments: tuple[NamedInstrument, ...] = STANDARD


def test_written_instruments_are_read_again() -> None:
    profiler = Profiler(node="echo", rate_hz=7, watch={"send": "^write"}, per="delivery")
    holder = Holder(instruments=(Requests(prefix="of_"), profiler, Streams()))
    assert Holder.model_validate_json(holder.model_dump_json()) == holder


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("os:system", "below 'perflab'"),
        ("perflabs.instruments:Requests", "below 'perflab'"),
        ("perflab.instruments.none:Requests", "No module named"),
        ("perflab.instruments:Sensor", "no class of instruments"),
    ],
)
def test_a_name_of_no_instrument_is_refused(kind: str, words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        from_written({"kind": kind})
