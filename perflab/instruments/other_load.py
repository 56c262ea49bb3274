"""A load that another generator sends beside the lab's own, and that generator's numbers."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import pandas as pd
from pydantic import Field

from perflab.errors import StackError
from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene, no_node
from perflab.load.workload import Workload
from perflab.recordings import Reason
from perflab.recordings.responses import at_least_column
from perflab.stacks.launching import exchange
from perflab.stacks.patience import go_on
from perflab.stacks.plan import StackPlan

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
LOOK_EVERY_S = 0.2
SHOWN_CHARACTERS = 300


class OtherLoad(Instrument):
    """Starts the load of another generator, waits for its end, and records its numbers.

    The lab posts ``body`` to ``path`` of ``node``, which starts the load (any 2xx). The answer's
    ``results`` is the path of the results; the lab gets them every ``poll_s`` until their
    ``status`` is no longer "running".

    **The lab vouches for none of these numbers**, so name the ``columns`` after who counted. Each
    has its key in the object ``results`` (dots lead into objects: ``errors.reset``).
    ``at_least_if`` has, by column, the keys of counts that must be 0, or else the number is a lower
    bound. The table ``other_load`` holds the requests where ``requests`` is the key of a list.

    The other load begins right before the lab's own, and its results are read when the lab's own is
    over: reading could disturb what is measured. Put this instrument last in a treatment: it ends
    first, and the others measure until its load is over. A trial fails where the load is refused,
    lasts longer than ``longest_s``, or its service has ended. It is invalid where the load did not
    end as "completed", or lacks a number.
    """

    tables: ClassVar = {TABLE: REQUEST}

    node: str
    path: str
    body: Mapping[str, Any] = Field(default_factory=dict)
    columns: Mapping[str, str] = Field(min_length=1)
    at_least_if: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    requests: str = ""
    poll_s: float = Field(default=1.0, gt=0, le=60)
    longest_s: float = Field(gt=0, le=86_400)

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _OtherLoad(self, scene)

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return a problem where there is no such node."""
        return no_node("other load", self.node, stack)


class _OtherLoad(Look):
    def __init__(self, settings: OtherLoad, scene: Scene) -> None:
        self._settings = settings
        self._scene = scene
        self._port = scene.instance(settings.node).launch.port
        self._name = f"POST {settings.path} of node '{settings.node}'"
        self._deadline_s = math.inf
        self._place = ""
        self._answer: Any = {}
        self._status = ""

    def begin(self) -> None:
        """Start the other load."""
        settings = self._settings
        self._deadline_s = time.monotonic() + settings.longest_s
        body = dict(settings.body)
        answer = exchange(self._port, "POST", settings.path, body, START_WITHIN_S)
        self._place = self._read(*answer, "results")
        if not self._place.startswith("/"):
            raise self._failure(
                f"the answer to its start names '{self._place}' as results, which is no path"
            )

    def end(self) -> None:
        """Wait until the other load is over; raise StackError where it lasts too long or fails."""
        while not self._is_over():
            until_s = min(time.monotonic() + self._settings.poll_s, self._deadline_s)
            while (left_s := until_s - time.monotonic()) > 0:
                time.sleep(min(LOOK_EVERY_S, left_s))
                self._go_on()

    def left(self) -> Mapping[str, pd.DataFrame]:
        """Return the other generator's requests, as far as they are known."""
        try:
            return self._requests()
        except LookupError:
            return {}

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return the other generator's numbers, or the reason why they cannot be used."""
        settings = self._settings
        try:
            if self._status != "completed":
                raise LookupError(f"its load ended as '{self._status}': {json.dumps(self._answer)}")
            results = _at(self._answer, "results")
            columns = told_columns(results, settings.columns, settings.at_least_if)
            return Observation(columns, self._requests())
        except LookupError as error:
            problem = _shown(str(error.args[0]))
            text = f"the results of {self._name} cannot be used: {problem}"
            reason = Reason(code="other_load.results", side="server", text=text)
            nothing = dict.fromkeys(settings.columns, math.nan)
            return Observation(nothing, self.left(), reasons=[reason])

    def _requests(self) -> dict[str, pd.DataFrame]:
        key = self._settings.requests
        return {TABLE: told_requests(_at(self._answer, f"results.{key}"))} if key else {}

    def _is_over(self) -> bool:
        self._go_on()
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise self._failure(f"it was not over within longest_s = {self._settings.longest_s:g}")
        patience_s = min(PATIENCE_S, max(LOOK_EVERY_S, left_s))
        try:
            answer = exchange(self._port, "GET", self._place, None, patience_s)
        except StackError:
            # A service that is held up does not answer; its process shows whether it lives.
            self._scene.residents.check_alive(self._scene.treatment)
            return False
        self._status = self._read(*answer, "status")
        return self._status != "running"

    def _go_on(self) -> None:
        go_on(self._scene.interrupted, f"while another load was under way ({self._name})")

    def _read(self, status: int, text: str, key: str) -> str:
        """Take an answer, and return the text that it has under a key."""
        try:
            self._answer = json.loads(text)
            value = _at(self._answer, key)
        except (ValueError, LookupError):
            value = None
        if not 200 <= status < 300 or not isinstance(value, str):
            raise self._failure(f"its answer (status {status}) has no text '{key}': {text}")
        return value

    def _failure(self, what: str) -> StackError:
        return StackError(f"the other load ({self._name}): {_shown(what)}")


def _shown(text: str) -> str:
    return text.strip()[:SHOWN_CHARACTERS]


def told_columns(
    results: Any, columns: Mapping[str, str], bounds: Mapping[str, tuple[str, ...]]
) -> dict[str, float]:
    """Return the numbers of ``results`` by column; ``null`` is NaN.

    Where a key of ``bounds`` holds more than 0, the column is NaN, and ``*_at_least`` has the
    number. Raises LookupError where there is no number under a key; the message names the key.
    """
    numbers: dict[str, float] = {}
    for column, key in columns.items():
        value = _number(_at(results, key), key)
        # All keys are read, so that a missing key is reported in every trial.
        cut_off = [_number(_at(results, cause), cause) for cause in bounds.get(column, ())]
        if any(number > 0 for number in cut_off):
            numbers |= {column: math.nan, at_least_column(column): value}
        else:
            numbers[column] = value
    return numbers


def told_requests(listed: Any) -> pd.DataFrame:
    """Return the other generator's requests as a table with the columns of ``REQUEST``.

    Raises LookupError where they are no list, or lack a column; the message says which.
    """
    if not isinstance(listed, list):
        raise LookupError("its list of requests is no list")
    table = pd.DataFrame(listed, columns=None if listed else [*REQUEST])
    kinds = {key: kind.replace("double", "float64") for key, kind in REQUEST.items()}
    return table.assign(place=range(len(table)))[[*REQUEST]].astype(kinds)


def _number(value: Any, key: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isinf(value):
        raise LookupError(f"'{key}' is {json.dumps(value)}, which is no number")
    return float(value)


def _at(document: Any, key: str) -> Any:
    value = document
    for step in key.split("."):
        if not isinstance(value, Mapping) or step not in value:
            raise LookupError(f"'{key}' is missing: there is no '{step}'")
        value = value[step]
    return value
