"""What is sent, and how it arrives: the whole description of a load, as data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from perflab.load.life_cycle import Connections, with_word
from perflab.load.payload import Payload, checksum
from perflab.load.streamed import Format, Streaming, check_marker
from perflab.load.windows import Windows, check_windows

ClientName = Literal["lean", "aiohttp", "httpx"]
Measured = Literal["response", "ttft", "gap"]
TOKEN = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
NO_CONTROLS = r"^[^\x00-\x08\x0a-\x1f\x7f]*$"
HeaderName = Annotated[str, Field(pattern=TOKEN)]
HeaderValue = Annotated[str, Field(pattern=NO_CONTROLS)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Request(_Model):
    """One request, prepared before the start, and what its answer must be.

    ``node`` names the node of the stack that answers; the lab fills in its address. With
    ``data``, every row fills the ``$name`` placeholders of path, header values and body; rows are
    used in turn. ``body`` is text, bytes, or a file (see :mod:`perflab.load.payload`); only text is
    filled. ``expect_body`` must occur in the body of every successful response, ``expect_bytes`` is
    its length; ``expect_crc32`` and ``expect_sha256`` are checksums of the whole body, computed as
    it is read. -1 or nothing leaves them open; ``expect_from`` names a file whose length and CRC-32
    they are, taken when the plan is made. With ``progress_points`` at most so many instants are
    recorded at which the body had come so far (the ``progress`` table). ``redirects`` is how many
    redirects are followed (0: none, a 3xx is an answer like others).

    ``stream`` says that the answer is a stream, of server-sent events (``sse``) or of lines of JSON
    (``ndjson``): when each chunk came is recorded (the ``chunks`` table), and there must be at
    least ``min_chunks`` of them. ``end_marker``, where given, must be the last event: all of its
    data (``[DONE]``), or members of the object in the last line (``"done":true``). It is no chunk.
    """

    node: str = ""
    method: Annotated[str, Field(pattern=TOKEN)] = "GET"
    path: Annotated[str, Field(pattern=r"^/[\x21-\x7e]*$")] = "/"
    headers: Mapping[HeaderName, HeaderValue] = Field(default_factory=dict)
    body: Payload = ""
    data: tuple[Mapping[str, Any], ...] = ()
    expect_status: int = Field(default=200, ge=0, le=999)
    expect_body: str = ""
    expect_bytes: int = Field(default=-1, ge=-1)
    expect_crc32: int = Field(default=-1, ge=-1, le=0xFFFFFFFF)
    expect_sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    redirects: int = Field(default=0, ge=0, le=20)
    progress_points: int = Field(default=0, ge=0, le=10_000)
    stream: Format | None = None
    min_chunks: int = Field(default=1, ge=1, le=1_000_000)
    end_marker: str = Field(default="", max_length=10_000)

    @model_validator(mode="before")
    @classmethod
    def _expects_a_file(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "expect_from" not in given:
            return given
        words = dict(given)
        file = words.pop("expect_from")
        twice = [name for name in ("expect_bytes", "expect_crc32") if name in words]
        if twice:
            raise ValueError(f"expect_from goes without {' and '.join(twice)}: they are the file's")
        try:
            words["expect_bytes"], words["expect_crc32"] = checksum(Path(file))
        except (OSError, TypeError) as error:
            raise ValueError(f"expect_from {file}: {error}") from None
        return words

    @field_validator("progress_points")
    @classmethod
    def _has_two_ends(cls, points: int) -> int:
        if points == 1:
            raise ValueError("give 2 points at least, for the first byte and the last, or 0")
        return points

    @property
    def streaming(self) -> Streaming | None:
        """Return what is expected of a streamed answer; None where it is to be none."""
        if self.stream is None:
            return None
        return Streaming(self.stream, self.min_chunks, self.end_marker)

    @model_validator(mode="after")
    def _can_be_streamed(self) -> Self:
        if self.stream is None:
            if self.min_chunks != 1 or self.end_marker:
                raise ValueError("min_chunks and end_marker need stream='sse' or stream='ndjson'")
            return self
        if self.method == "HEAD":
            raise ValueError("the answer to HEAD has no body that could be a stream")
        if self.redirects:
            raise ValueError(
                "a stream goes without redirects: name the address that streams (redirects=0)"
            )
        check_marker(self.stream, self.end_marker)
        return self

    @model_validator(mode="after")
    def _fills_text(self) -> Self:
        if self.data and not isinstance(self.body, str):
            raise ValueError("placeholders are filled in text: bytes and files go without data")
        return self


class UserStage(_Model):
    """A stretch of a closed loop: from one number of users evenly to another."""

    users: int = Field(ge=0, le=100_000)
    to_users: int | None = Field(default=None, ge=0, le=100_000)
    duration_s: float = Field(gt=0, le=86_400)

    @property
    def end_users(self) -> int:
        """Return the number of users at the end of the stage."""
        return self.users if self.to_users is None else self.to_users


class ClosedLoop(_Model):
    """``users`` users, each of whom waits for its answer before the next request.

    Bounded by ``requests`` in all, by ``duration_s``, or both (0 leaves one open).
    ``warmup_requests`` or ``warmup_s`` come first, by the same users, without a pause between,
    recorded as stage ``warmup``. A user waits ``think_time_s`` after an answer, or keeps a
    constant pace of one request per ``pacing_s``. Users join evenly over ``ramp_s``; with
    ``stages``, whose times add up to warm-up and duration, they come and go, the last to come
    first, and finish what they have begun; ``users`` is then the most there are at a time.
    ``max_duration_s`` is the bound on the whole; what was not sent by then counts as unsent.

    With ``keep_up`` users go on until the last of the ``requests`` that count is answered; what
    they send meanwhile is recorded as stage ``after``. Without it the last ``users`` requests meet
    ever fewer others, and a load that is steady seems to get faster.

    With ``windows`` a request that would be planned outside of them is planned for the begin of the
    next: all users are there again at once.
    """

    kind: Literal["closed"] = "closed"
    users: int = Field(ge=1, le=100_000)
    requests: int = Field(default=0, ge=0)
    duration_s: float = Field(default=0.0, ge=0, le=86_400)
    warmup_requests: int = Field(default=0, ge=0)
    warmup_s: float = Field(default=0.0, ge=0, le=86_400)
    think_time_s: float = Field(default=0.0, ge=0)
    pacing_s: float = Field(default=0.0, ge=0)
    ramp_s: float = Field(default=0.0, ge=0)
    stages: tuple[UserStage, ...] = ()
    keep_up: bool = False
    windows: Windows | None = None
    max_duration_s: float = Field(default=120.0, gt=0, le=172_800)

    @model_validator(mode="after")
    def _is_bounded(self) -> Self:
        if not self.requests and not self.duration_s:
            raise ValueError("give requests or duration_s: a load without an end is refused")
        if self.keep_up and not self.requests:
            raise ValueError("keep_up goes with requests: a load of a given time keeps its users")
        if self.think_time_s and self.pacing_s:
            raise ValueError("give think_time_s or pacing_s, not both")
        if self.warmup_requests and self.warmup_s:
            raise ValueError("give warmup_requests or warmup_s, not both")
        if self.stages:
            self._has_fitting_stages()
        if self.windows is not None:
            self._has_fitting_windows()
        return self

    def _has_fitting_windows(self) -> None:
        if self.requests or self.warmup_requests or self.ramp_s or self.stages:
            raise ValueError(
                "windows go with duration_s; not with numbers of requests, ramp_s or stages"
            )
        length_s = self.warmup_s + self.duration_s
        check_windows(self.windows, self.warmup_s, min(length_s, self.max_duration_s))

    def _has_fitting_stages(self) -> None:
        if self.requests or self.warmup_requests or self.ramp_s:
            raise ValueError("stages go with duration_s; not with numbers of requests, or ramp_s")
        length_s = sum(stage.duration_s for stage in self.stages)
        if abs(length_s - self.warmup_s - self.duration_s) > 1e-6:
            raise ValueError(f"stages last {length_s:g} s, warmup_s and duration_s do not")
        if max(max(stage.users, stage.end_users) for stage in self.stages) != self.users:
            raise ValueError("users must be the largest number of users of the stages")


class Stage(_Model):
    """A stretch of an open loop: from one rate evenly to another (requests per second)."""

    rate: float = Field(ge=0, le=1e6)
    to_rate: float | None = Field(default=None, ge=0, le=1e6)
    duration_s: float = Field(gt=0, le=86_400)

    @property
    def end_rate(self) -> float:
        """Return the rate at the end of the stage."""
        return self.rate if self.to_rate is None else self.to_rate


class OpenLoop(_Model):
    """Requests arrive by a schedule computed before the start, whatever the server does.

    Constant gaps or a Poisson process (``seed``), in stages. The first ``warmup_s`` of the
    schedule are recorded as stage ``warmup``. ``requests`` ends the schedule after as many requests
    of the measure stage (0: it is carried out whole). With ``windows`` only those arrivals of the
    schedule are kept that lie in one: within windows it is the same process.
    """

    kind: Literal["open"] = "open"
    stages: tuple[Stage, ...] = Field(min_length=1)
    arrivals: Literal["constant", "poisson"] = "constant"
    seed: int = Field(default=0, ge=0)
    requests: int = Field(default=0, ge=0)
    warmup_s: float = Field(default=0.0, ge=0)
    windows: Windows | None = None

    @model_validator(mode="after")
    def _has_arrivals(self) -> Self:
        if not any(stage.rate + stage.end_rate for stage in self.stages):
            raise ValueError("every stage has rate 0: nothing would be sent")
        if self.windows is not None and self.requests:
            raise ValueError("windows go with the length of the stages, not with requests")
        check_windows(self.windows, self.warmup_s, self.duration_s)
        return self

    @property
    def duration_s(self) -> float:
        """Return the length of the schedule in seconds."""
        return sum(stage.duration_s for stage in self.stages)


class Burst(_Model):
    """``size`` requests planned for one and the same instant, ``waves`` times."""

    kind: Literal["burst"] = "burst"
    size: int = Field(ge=1, le=100_000)
    waves: int = Field(default=1, ge=1, le=10_000)
    interval_s: float = Field(default=1.0, gt=0)


class Scripted(_Model):
    """Users whose actions are a Python class (see ``users.User``).

    ``script`` names it: ``path/to/file.py:Class`` or ``module:Class``; ``parameters`` are its own.
    User k joins after k times ``join_s``. Everyone acts until ``duration_s`` is over, or for
    ``actions`` actions (0: no limit). ``monitor`` names the class of one more user, whose number is
    ``users``: there from the start until the others have gone, with no limit on actions.
    """

    kind: Literal["scripted"] = "scripted"
    script: str
    users: int = Field(ge=1, le=100_000)
    duration_s: float = Field(gt=0, le=86_400)
    actions: int = Field(default=0, ge=0)
    join_s: float = Field(default=0.0, ge=0)
    warmup_s: float = Field(default=0.0, ge=0)
    seed: int = Field(default=0, ge=0)
    parameters: Mapping[str, Any] = Field(default_factory=dict)
    monitor: str = ""


class Objective(_Model):
    """A bound on a percentile of a time, in ms.

    ``of`` is that time: the response time; of streams also the time to the first chunk (``ttft``)
    or the gaps between chunks (``gap``). A response time is looked at over a window while the load
    goes on, and ends it when missed; times of streams are judged when the load is over.
    """

    percentile: float = Field(gt=0, le=100)
    below_ms: float = Field(gt=0)
    window_s: float = Field(default=5.0, gt=0)
    of: Measured = "response"

    @property
    def is_watched(self) -> bool:
        """Whether a miss ends the load."""
        return self.of == "response"

    @property
    def text(self) -> str:
        """Return it as the command line has it."""
        bound = f"p{self.percentile:g}<{self.below_ms:g}ms"
        return f"{bound}/{self.window_s:g}s" if self.is_watched else f"{self.of}_{bound}"


class StopRules(_Model):
    """When a load ends before its time; 0 or nothing means never. Data is always kept.

    ``failures`` ends it at so many failures, of all workers and stages together, and makes them an
    answer of the study: until the number is reached they do not refuse the load, whatever their
    share. Nothing is started any more; what is under way goes on to its end or its time-out, and
    what waits for a connection is given up (``unsent``). What ended after the failure that
    completed the number is recorded as stage ``after_stop`` and in no time or throughput.
    """

    failures: int = Field(default=0, ge=0)
    failure_share: float = Field(default=0.0, ge=0, le=1)
    objectives: tuple[Objective, ...] = ()

    @property
    def failures_reached(self) -> str:
        """Return the words for an end by ``failures``."""
        return f"{self.failures} requests failed"


Arrivals = Annotated[ClosedLoop | OpenLoop | Burst | Scripted, Field(discriminator="kind")]


class Workload(_Model):
    """A request, its arrivals, and the life cycle of connections.

    ``connections`` is that life cycle, or a word for it (``keep_alive``, ``per_request``), or a
    whole number for a cap; see :class:`~perflab.load.life_cycle.Connections`. The other clients
    have not all of it: what a client lacks is refused here.

    ``may_time_out`` says that time-outs are answers of the study, as of a server that is to be
    shown to fail: a load in which requests, or all of them, time out is then valid. They count as
    failures like any other, and times that they could move are bounds.
    """

    request: Request
    arrivals: Arrivals
    connections: Connections = Connections()
    timeout_s: float = Field(default=30.0, gt=0, le=3_600)
    may_time_out: bool = False
    client: ClientName = "lean"
    stop: StopRules = StopRules()
    verify_tls: bool = True
    ca_file: str = ""

    @model_validator(mode="before")
    @classmethod
    def _takes_the_word(cls, given: Any) -> Any:
        return with_word(given)

    @model_validator(mode="after")
    def _is_in_reach_of_its_client(self) -> Self:
        life = self.connections
        if self.client != "lean" and (life.requests > 1 or life.churn_per_s or life.churn_share):
            raise ValueError(
                f"the {self.client} client closes no connection after a number of requests and "
                "has no churn; the lean one does (client='lean')"
            )
        if self.client != "lean" and self.request.progress_points:
            raise ValueError(
                f"the {self.client} client records no progress_points; the lean one does "
                "(client='lean')"
            )
        if self.client != "lean" and self.request.stream:
            raise ValueError(
                f"the {self.client} client records no chunks of a stream; the lean one does "
                "(client='lean')"
            )
        if self.client == "httpx" and life.idle_s:
            raise ValueError(
                "the httpx client closes an idle connection only when it sends the next request; "
                "aiohttp and the lean client close it in time"
            )
        return self

    @model_validator(mode="after")
    def _streams_without_windows(self) -> Self:
        if self.request.stream and self.windows is not None:
            raise ValueError("windows go without streams: chunks come after a window's end, too")
        return self

    @property
    def windows(self) -> Windows | None:
        """Return the only times in which this load sends; None where it always may."""
        return getattr(self.arrivals, "windows", None)

    @property
    def bound_s(self) -> float:
        """Return the longest time this load can take, in seconds."""
        arrivals = self.arrivals
        if isinstance(arrivals, ClosedLoop):
            return arrivals.max_duration_s + arrivals.duration_s + arrivals.warmup_s
        if isinstance(arrivals, Burst):
            return arrivals.interval_s * arrivals.waves
        if isinstance(arrivals, Scripted):
            return arrivals.warmup_s + arrivals.duration_s
        return arrivals.duration_s
