"""Events that the conductor sends while it runs, one line of JSON each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from perflab.errors import UnknownEvent
from perflab.recordings import Reason
from perflab.recordings.schema import TrialState

LONGEST_SHOWN = 200


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunBegun(_Event):
    """The run has its folder: ``path``."""

    event: Literal["run"] = "run"
    run_id: str
    path: str
    backend: str
    resumed: bool = False


class Note(_Event):
    """A step of slow work, or a problem that was mended."""

    event: Literal["note"] = "note"
    text: str


class TrialBegun(_Event):
    """The ``number``-th trial ``of`` those of this session begins; blocks are counted from 1.

    ``left_s`` is an estimate of the remaining time; None while it is unknown. With ``at_most`` the
    run may end earlier: ``of``, ``blocks`` and ``left_s`` are upper bounds.
    """

    event: Literal["trial"] = "trial"
    number: int
    of: int
    block: int
    blocks: int
    treatment: str
    label: str
    left_s: float | None = None
    at_most: bool = False


class LoadProgress(_Event):
    """Finished requests ``of`` the planned ones (-1: time ends the load), after ``seconds``.

    These live numbers are never a result: nothing has judged them yet.
    """

    event: Literal["load"] = "load"
    finished: int
    of: int
    seconds: float
    failed: int = 0
    warming_up: bool = False


class TrialDone(_Event):
    """A trial is committed; a rate that it does not have is None."""

    event: Literal["trial_done"] = "trial_done"
    trial_id: str
    state: TrialState
    reasons: tuple[Reason, ...] = ()
    throughput_rps: float | None = None
    messages_per_s: float | None = None
    left_s: float | None = None


class Failed(_Event):
    """The run ends with an error; ``kind`` is its class in :mod:`perflab.errors`."""

    event: Literal["error"] = "error"
    kind: str
    text: str


Event = RunBegun | Note | TrialBegun | LoadProgress | TrialDone | Failed
_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def parse(line: str | bytes) -> Event:
    """Return the event of a line of JSON; raise UnknownEvent for any other line."""
    try:
        return _EVENT.validate_json(line)
    except ValidationError as error:
        text = line.decode(errors="replace") if isinstance(line, bytes) else line
        first = error.errors(include_url=False)[0]["msg"]
        raise UnknownEvent(
            f"the run sent a line that this perflab cannot read ({first:.{LONGEST_SHOWN}}): "
            f"{text.strip():.{LONGEST_SHOWN}}. Both must be of one version: where perflab was "
            "changed after this program or kernel was started, start it again"
        ) from error
