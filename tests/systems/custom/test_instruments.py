"""The instruments of variants refuse what they could not measure, before anything starts."""

from __future__ import annotations

import socket

import pytest

from perflab.errors import LoadError
from perflab.stacks.plan import StackPlan
from perflab.systems.custom.instruments import RightAnswer


def test_an_address_where_nobody_listens_is_refused_before_the_run_begins() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        instrument = RightAnswer(variant="new", target=f"http://{place}")
        instrument.check_usable(StackPlan(nodes=()))
    with pytest.raises(LoadError, match=f"variant 'new': nobody answers at {place} "):
        instrument.check_usable(StackPlan(nodes=()))
    RightAnswer(variant="new").check_usable(StackPlan(nodes=()))
