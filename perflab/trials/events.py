"""What the conductor tells while it runs: events, one line of JSON each."""

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
    """A step of slow work, or something that went wrong and was mended."""

    event: Literal["note"] = "note"
    text: str


class TrialBegun(_Event):
    """The ``number``-th trial ``of`` those to do now; blocks are counted from 1.

    ``left_s`` is how long the rest will take; None while nobody knows. With ``at_most`` the run may
    end before: ``of``, ``blocks`` and all estimates are the most that it can come to.
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
    """Requests that are finished, ``of`` so many (-1: time ends the load), after ``seconds``.

    What is live is for the eye, and never a result: nothing has judged it yet.
    """

    event: Literal["load"] = "load"
    finished: int
    of: int
    seconds: float
    failed: int = 0
    warming_up: bool = False


class TrialDone(_Event):
    """A trial is committed; a rate is None where it has none."""

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
    """Return the event that a line of JSON tells.

    Raises
    ------
    UnknownEvent
        The line is no event that this perflab knows.
    """
    try:
        return _EVENT.validate_json(line)
    except ValidationError as error:
        said = line.decode(errors="replace") if isinstance(line, bytes) else line
        first = error.errors(include_url=False)[0]["msg"]
        raise UnknownEvent(
            f"the run says what this perflab does not understand ({first:.{LONGEST_SHOWN}}): "
            f"{said.strip():.{LONGEST_SHOWN}}. Both must be of one version: was perflab changed "
            "since this program or kernel was started? Start it again"
        ) from error
