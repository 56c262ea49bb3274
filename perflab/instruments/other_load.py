"""A load that another generator sends beside the lab's own, and that generator's numbers."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pandas as pd
from pydantic import Field

from perflab.errors import StackError
from perflab.instruments.instrument import Load, Observation, OfNode, Scene, Sensor
from perflab.recordings import Reason
from perflab.recordings.responses import or_bound
from perflab.stacks.asking import exchange
from perflab.stacks.commands import go_on

TABLE = "other_load"
# The columns of the table: a request's place in the list, and the other generator's keys.
REQUEST: Mapping[str, str] = {
    "place": "int64",
    "start_ms": "double",
    "first_byte_ms": "double",
    "end_ms": "double",
    "bytes": "double",
    "outcome": "string",
}
START_WITHIN_S, PATIENCE_S = 10.0, 1.0
# During a wait the run is checked for an interruption this often.
POLL_EVERY_S = 0.2
SHOWN_CHARACTERS = 300


class _OtherLoad(Sensor["OtherLoad"]):
    def __init__(self, settings: OtherLoad, scene: Scene) -> None:
        super().__init__(settings, scene)
        self._port = scene.instance(settings.node).launch.port
        self._name = f"POST {settings.path} of node '{settings.node}'"
        self._deadline_s = math.inf
        self._place = ""
        self._answer: Any = {}
        self._status = ""

    def begin(self) -> None:
        settings = self.settings
        self._deadline_s = time.monotonic() + settings.longest_s
        body = dict(settings.body)
        status, text = exchange(self._port, "POST", settings.path, body, START_WITHIN_S)
        place = self._text_at("results", self._read(status, text, "its start"))
        if not place.startswith("/"):
            raise self._failure(f"its start was answered with '{place}', which is no path")
        self._place = place

    def end(self) -> None:
        """Wait until the other load is over; raise StackError or ServiceFailed where it fails."""
        while not self._is_over():
            until_s = min(time.monotonic() + self.settings.poll_s, self._deadline_s)
            while (left_s := until_s - time.monotonic()) > 0:
                time.sleep(min(POLL_EVERY_S, left_s))
                self._go_on()

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return the other generator's numbers, or the reason why they cannot be used."""
        settings = self.settings
        try:
            if self._status != "completed":
                raise ValueError(f"its load ended as '{self._status}': {json.dumps(self._answer)}")
            results = self._answer["results"]
            columns = told_columns(results, settings.columns, settings.at_least_if)
            key = settings.requests
            return Observation(columns, {TABLE: told_requests(results[key])} if key else {})
        except (LookupError, TypeError, ValueError) as error:
            text = f"{self._name} gave no usable numbers: {error}"[:SHOWN_CHARACTERS]
            reason = Reason(code="other_load.results", side="server", text=text)
            return Observation(dict.fromkeys(settings.columns, math.nan), reasons=[reason])

    def _is_over(self) -> bool:
        self._go_on()
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise self._failure(f"not over within longest_s = {self.settings.longest_s:g}")
        patience_s = min(PATIENCE_S, max(POLL_EVERY_S, left_s))
        try:
            status, text = exchange(self._port, "GET", self._place, None, patience_s)
        except StackError:
            # A service that is held up does not answer; its process shows whether it lives.
            self.scene.residents.check_alive(self.scene.treatment)
            return False
        self._answer = self._read(status, text, "its results")
        self._status = self._text_at("status", self._answer)
        return self._status != "running"

    def _go_on(self) -> None:
        go_on(self.scene.interrupted, f"while another load was under way ({self._name})")

    def _read(self, status: int, text: str, what: str) -> Any:
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not 200 <= status < 300 or answer is None:
            raise self._failure(f"{what} was answered {status}: {text}")
        return answer

    def _text_at(self, key: str, answer: Any) -> str:
        value = answer.get(key) if isinstance(answer, Mapping) else None
        if not isinstance(value, str):
            raise self._failure(f"no text '{key}' in its answer: {json.dumps(answer)}")
        return value

    def _failure(self, what: str) -> StackError:
        return StackError(f"the other load ({self._name}): {what.strip()[:SHOWN_CHARACTERS]}")


class OtherLoad(OfNode):
    """Starts the load of another generator, waits for its end, and records its numbers.

    The lab posts ``body`` to ``path`` of ``node``, which starts the load. The answer's ``results``
    is the path of the results; the lab gets them every ``poll_s`` until their ``status`` is no
    longer "running".

    **The lab vouches for none of these numbers**: name the ``columns`` after who counted. Each has
    its key in the object ``results`` (``errors.reset`` leads into an object). A number is a lower
    bound where a count that ``at_least_if`` names for its column is not 0. The table ``other_load``
    holds the list of requests under the key ``requests``.

    The other load begins right before the lab's own; its results are read when the lab's own is
    over, because reading them could disturb the loop that is measured. Put this instrument last in
    a treatment: it ends first, and the others measure until its load is over. A trial fails where
    the load is refused, lasts longer than ``longest_s``, or its service has ended. It is invalid
    where the load did not end as "completed", or lacks a number.
    """

    at_work: ClassVar = _OtherLoad
    tables: ClassVar = {TABLE: REQUEST}

    path: str
    body: Mapping[str, Any] = Field(default_factory=dict)
    columns: Mapping[str, str] = Field(min_length=1)
    at_least_if: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    requests: str = ""
    poll_s: float = Field(default=1.0, gt=0, le=60)
    longest_s: float = Field(gt=0, le=86_400)


def told_columns(
    results: Mapping[str, Any], columns: Mapping[str, str], bounds: Mapping[str, tuple[str, ...]]
) -> dict[str, float]:
    """Return the numbers of ``results`` by column; ``null`` is NaN.

    Where a key of ``bounds`` holds more than 0, the column is NaN, and ``*_at_least`` has the
    number, as for the lab's own bounds. Raises KeyError or TypeError where a number is missing.
    """
    numbers: dict[str, float] = {}
    for column, key in columns.items():
        value = _number(_at(results, key))
        # All keys are read, so that a missing key is reported in every trial.
        cut_off = [_number(_at(results, cause)) for cause in bounds.get(column, ())]
        numbers |= or_bound(column, value, is_known=not any(number > 0 for number in cut_off))
    return numbers


def _at(document: Any, key: str) -> Any:
    """Return what stands under a key; dots lead into objects."""
    for step in key.split("."):
        document = document[step]
    return document


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def told_requests(listed: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the other generator's requests as a table with the columns of ``REQUEST``."""
    table = pd.DataFrame(listed).assign(place=range(len(listed)))[[*REQUEST]]
    return table.astype({key: float for key, kind in REQUEST.items() if kind == "double"})
