"""The whole description of a load as data: its requests and how they arrive."""

from __future__ import annotations

import re
import ssl
from typing import Literal, Self

from pydantic import Field, model_validator

from perflab.load.workload.arrivals import Arrivals, Burst, ClosedLoop, Scripted, Windows
from perflab.load.workload.mix import Weighted, problem_with
from perflab.load.workload.request import Connections, Request
from perflab.parameters import FrozenModel

Measured = Literal["response", "ttft", "gap"]
_WORDS = re.compile(r"(?:(ttft|gap)_)?p(\d+(?:\.\d+)?)\s*<=?\s*(\d+(?:\.\d+)?)\s*(ms|s)?")
_LIKE = "'p99<1000ms', or of streams 'ttft_p95<500ms', 'gap_p99<100ms'"
# How often one user asks before a load, and for how long (at least so often all the same).
MOST_CHECKS, LEAST_CHECKS, CHECKS_S = 20, 3, 2.0
ClientName = Literal["lean", "aiohttp", "httpx", "http2"]


class Objective(FrozenModel):
    """A bound on a percentile of a time, in ms, over the whole measure stage.

    ``of`` names the time: the response time, or for streams the time to the first chunk (``ttft``)
    or the gaps between chunks (``gap``).
    """

    percentile: float = Field(gt=0, le=100)
    below_ms: float = Field(gt=0)
    of: Measured = "response"

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the objective that a text names; raise ValueError with an example for others."""
        match = _WORDS.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"'{text}' is not like {_LIKE}")
        of, percentile, bound, unit = match.groups()
        if not 0 < float(percentile) <= 100 or not float(bound):
            raise ValueError(f"'{text}': percentiles are above 0 and at most 100, times above 0")
        return cls(
            of=of or "response",
            percentile=float(percentile),
            below_ms=float(bound) * (1000.0 if unit == "s" else 1.0),
        )

    def __str__(self) -> str:
        of = "" if self.of == "response" else f"{self.of}_"
        return f"{of}p{self.percentile:g}<{self.below_ms:g}ms"


class StopRules(FrozenModel):
    """When a load ends before its time; 0 means never. Data is always kept.

    ``failures`` ends it at so many failures, of all workers and stages together, and makes them a
    result of the study: they do not refuse the load, whatever their share. No more requests are
    started; those under way go on to their end or their time-out, and those that wait for a
    connection are given up (``unsent``). Requests that ended after the failure that completed the
    number are recorded as stage ``after_stop`` and count in no time or throughput.
    """

    failures: int = Field(default=0, ge=0)

    @property
    def failures_reached(self) -> str:
        """Return the words for an end by ``failures``."""
        return f"{self.failures} requests failed"


class Workload(FrozenModel):
    """A request, or a ``mix`` of several, its arrivals, and its connections.

    Of a mix ``request`` is the first. ``seed`` decides the sequence of names and values.
    ``connections`` may be a word (``keep_alive``, ``per_request``), or a whole number for a cap;
    see :class:`~perflab.load.workload.request.Connections`.

    ``may_time_out`` says that time-outs are results of the study, for example of a server that is
    shown to fail: a load in which some or all requests time out is then valid. Time-outs count as
    failures like any other, and times that they could move are bounds.

    ``objectives`` are judged when the load is over. ``ca_file`` is a bundle of authorities that TLS
    trusts. No cookie is kept.
    """

    request: Request
    mix: tuple[Weighted, ...] = ()
    seed: int = 0
    arrivals: Arrivals
    connections: Connections = Connections()
    timeout_s: float = Field(default=30.0, gt=0, le=3_600)
    may_time_out: bool = False
    client: ClientName = "lean"
    stop: StopRules = StopRules()
    objectives: tuple[Objective, ...] = ()
    verify_tls: bool = True
    ca_file: str = ""

    @model_validator(mode="after")
    def _can_be_mixed(self) -> Self:
        names = [item.name for item in self.mix]
        if len({*names}) < len(names):
            raise ValueError("two requests have one name; give each a name of its own")
        if self.mix and (self.client != "lean" or isinstance(self.arrivals, Scripted)):
            raise ValueError("several requests are sent by the lean client, and not by a script")
        for item in self.mix:
            if problem := problem_with(item.request):
                raise ValueError(f"request '{item.name}': {problem}")
        return self

    @property
    def requests(self) -> tuple[Request, ...]:
        """Return the one request, or those of the mix."""
        return tuple(item.request for item in self.mix) or (self.request,)

    @property
    def is_judged(self) -> bool:
        """Whether every answer is held against what is expected of its body."""
        return all(request.is_judged for request in self.requests)

    def with_credentials(self) -> Self:
        """Return the workload as it is sent, with the values of its references."""
        mix = tuple(
            item.model_copy(update={"request": item.request.with_credentials()})
            for item in self.mix
        )
        return self.model_copy(update={"request": self.request.with_credentials(), "mix": mix})

    def tls_context(self) -> ssl.SSLContext:
        """Return a new TLS context, which verifies the server as this workload wants it."""
        context = ssl.create_default_context(cafile=self.ca_file or None)
        if not self.verify_tls:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    @property
    def windows(self) -> Windows | None:
        """Return the only times in which this load sends; None without windows."""
        return getattr(self.arrivals, "windows", None)

    @property
    def bound_s(self) -> float:
        """Return the longest time this load can take, in seconds."""
        arrivals = self.arrivals
        if isinstance(arrivals, ClosedLoop):
            return arrivals.max_duration_s + arrivals.duration_s + arrivals.warmup_s
        if isinstance(arrivals, Burst):
            return 1.0
        if isinstance(arrivals, Scripted):
            return arrivals.warmup_s + arrivals.duration_s
        return arrivals.duration_s


def one_user(workload: Workload, requests: int) -> Workload:
    """Return a load of so many requests, by one user; it ends at the first failure.

    Of a mix each name is sent as often as the others.
    """
    bound_s = requests * (workload.timeout_s + 1)
    arrivals = ClosedLoop(users=1, requests=requests, max_duration_s=min(172_800, bound_s))
    mix = tuple(item.model_copy(update={"weight": 1.0}) for item in workload.mix)
    update = {"arrivals": arrivals, "stop": StopRules(failures=1), "objectives": (), "mix": mix}
    return workload.model_copy(update=update)
