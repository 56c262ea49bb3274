"""A load that another generator makes beside the lab's own, and what that one counts of it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Self

import pandas as pd
from pydantic import Field, model_validator

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene, no_node
from perflab.instruments.other_generator import OtherGenerator
from perflab.instruments.other_results import REQUEST, absent, told_columns, told_requests
from perflab.load.workload import Workload
from perflab.recordings import Reason
from perflab.stacks.patience import go_on
from perflab.stacks.plan import StackPlan
from perflab.stacks.spec import load_service

TABLE = "other_load"
# So long may a wait go on before it is asked whether somebody wants to end.
LOOK_EVERY_S = 0.2
Column = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Path = Annotated[str, Field(pattern=r"^/[\x21-\x7e]*$")]
Pointer = Annotated[str, Field(pattern=r"^(/|$)")]


class OtherLoad(Instrument):
    """Starts a load that another generator makes, waits for its end, and takes its numbers over.

    The generator may be a part of the service that it loads. It is told what to do in three steps:
    ``body`` is posted to ``path`` of ``node``, which starts it (any 2xx); its answer names, at the
    pointer ``results``, the path at which its results are; they are looked at there every
    ``poll_s`` until their ``status`` is none of ``under_way``. Pointers are JSON Pointers (RFC
    6901). With ``bearer`` all of them show the stack's secret as token.

    **The lab vouches for none of its numbers**: not its clock, nor what it takes for a success, nor
    whether it was held up itself. So name the ``columns`` (to each its pointer into the results)
    after who counted, and declare them as responses that say so: "as the service's own generator
    counts". A number that is a lower bound, since requests of that load were cut off, is one here
    too: ``at_least_if`` has by column the pointers of which none may lead to true, or to a number
    but 0. The table ``other_load`` holds its requests where ``requests`` points to a list of them;
    ``request_fields`` says where in each of them its instants, bytes and outcome stand.

    It begins right before the lab's own load, and is looked at when that is over: before that every
    look would take a little of a loop that may be what is measured. Put it last in a treatment's
    instruments: the first to end, the others look on until its load is over. A service that is held
    up answers no look: each is given up after ``patience_s``, and is no fault. A trial fails where
    the load is refused, not over ``longest_s`` after its start, or its service gone; then services
    start afresh, and nothing of it meets the next trial. It is invalid where that load did not end
    as one of ``completed``, or does not tell a number.
    """

    tables: ClassVar = {TABLE: REQUEST}

    node: str
    path: Path
    body: Mapping[str, Any] = Field(default_factory=dict)
    bearer: bool = False
    results: Pointer = "/results"
    status: Pointer = "/status"
    under_way: tuple[str, ...] = ("running",)
    completed: tuple[str, ...] = ("completed",)
    columns: Mapping[Column, Pointer] = Field(min_length=1)
    at_least_if: Mapping[Column, tuple[Pointer, ...]] = Field(default_factory=dict)
    requests: Pointer | None = None
    request_fields: Mapping[str, Pointer] = Field(default_factory=dict)
    poll_s: float = Field(default=1.0, gt=0, le=60)
    patience_s: float = Field(default=1.0, gt=0, le=10)
    start_within_s: float = Field(default=10.0, gt=0, le=60)
    longest_s: float = Field(gt=0, le=86_400)

    @model_validator(mode="after")
    def _bounds_what_it_has(self) -> Self:
        if unknown := sorted(set(self.at_least_if) - set(self.columns)):
            raise ValueError(f"at_least_if: {', '.join(unknown)} is none of the columns")
        if unknown := sorted(set(self.request_fields) - (set(REQUEST) - {"place"})):
            raise ValueError(f"request_fields: {', '.join(unknown)} is no column of '{TABLE}'")
        if self.request_fields and self.requests is None:
            raise ValueError("request_fields goes with requests: where is the list of them?")
        return self

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _OtherLoad(self, scene)

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that there is no such node, or that it knows no secret that it could be shown."""
        if problems := no_node("other load", self.node, stack):
            return problems
        service = stack.node(self.node).service
        if not self.bearer or load_service(service).takes_secret:
            return []
        return [f"other load: service '{service}' takes no secret: nothing to show as its token"]


class _OtherLoad(Look):
    def __init__(self, settings: OtherLoad, scene: Scene) -> None:
        self._settings = settings
        self._scene = scene
        launch = scene.instance(settings.node).launch
        self._generator = OtherGenerator(
            launch.port,
            f"POST {settings.path} of node '{settings.node}'",
            launch.secret if settings.bearer else "",
        )
        self._deadline_s = math.inf
        self._place = ""
        self._answer: Any = None
        self._status = ""

    def begin(self) -> None:
        """Start the other load."""
        wanted = self._settings
        self._deadline_s = time.monotonic() + wanted.longest_s
        self._place = self._generator.start(
            wanted.path, wanted.body, wanted.results, wanted.start_within_s
        )

    def end(self) -> None:
        """Wait until the other load is over.

        Raises
        ------
        StackError
            It is not over in time, or its results are refused.
        ServiceFailed
            A service of the treatment has ended.
        RunInterrupted
            The user wants to end.
        """
        while not self._is_over():
            self._rest()

    def left(self) -> Mapping[str, pd.DataFrame]:
        """Return its own record of its requests, as far as it was told."""
        wanted = self._settings
        if self._answer is None or wanted.requests is None:
            return {}
        try:
            return {TABLE: told_requests(self._answer, wanted.requests, wanted.request_fields)}
        except LookupError:
            return {}

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return what the other generator tells, or why that cannot be taken."""
        wanted = self._settings
        try:
            return Observation(self._columns(), self.left())
        except LookupError as problem:
            said = self._generator.shown(str(problem.args[0]))
            text = f"{self._generator.name} says nothing that can be used: {said}"
            reason = Reason(code="other_load.results", side="server", text=text)
            return Observation(absent(wanted.columns), self.left(), reasons=[reason])

    def _columns(self) -> dict[str, float]:
        wanted = self._settings
        if self._status not in wanted.completed:
            raise LookupError(f"its load ended as '{self._status}': {json.dumps(self._answer)}")
        if wanted.requests is not None:
            told_requests(self._answer, wanted.requests, wanted.request_fields)
        return told_columns(self._answer, wanted.columns, wanted.at_least_if)

    def _is_over(self) -> bool:
        wanted = self._settings
        self._go_on()
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise self._generator.failure(f"not over within longest_s = {wanted.longest_s:g}")
        patience_s = min(wanted.patience_s, max(LOOK_EVERY_S, left_s))
        known = self._generator.look(self._place, wanted.status, patience_s)
        if known is None:
            self._scene.residents.check_alive(self._scene.treatment)
            return False
        self._status, self._answer = known
        return self._status not in wanted.under_way

    def _rest(self) -> None:
        until_s = min(time.monotonic() + self._settings.poll_s, self._deadline_s)
        while (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(LOOK_EVERY_S, left_s))
            self._go_on()

    def _go_on(self) -> None:
        go_on(self._scene.interrupted, f"while another load was under way ({self._generator.name})")
