"""What a request costs the service, whatever the service is called, and how many failed."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import ClassVar

from perflab.errors import LoadError, ServiceFailed, WrongAnswer
from perflab.instruments import Instrument, Load, Look, Observation, Scene
from perflab.load.clients.targets import refuse_foreign
from perflab.stacks.backend import HOST
from perflab.stacks.launching import OPENER
from perflab.trials.summary import OnTime, cpu_us_per_success, largest_memory

SHOWN = 200


class RightAnswer(Instrument):
    """Sends the workload's request once, and ends the run where the answer is not as expected.

    No answer at all fails the trial alone: whoever died may live when it is started afresh.
    ``target`` is where the variant runs; empty for one that the lab started.
    """

    shares_time: ClassVar = True

    variant: str
    target: str = ""
    allowed: tuple[str, ...] = ()

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _RightAnswer(self, scene)


class _RightAnswer(Look):
    def __init__(self, asked: RightAnswer, scene: Scene) -> None:
        self._asked = asked
        self._scene = scene

    def before(self) -> None:
        """Ask once."""
        address = self._asked.target or self._own()
        refuse_foreign(address, self._asked.allowed)
        wanted = self._scene.workload.request
        body = str(wanted.body).encode() if wanted.body else None
        request = urllib.request.Request(
            address + wanted.path, body, dict(wanted.headers), method=wanted.method
        )
        what = f"{wanted.method} {wanted.path}"
        try:
            status, text = _answer(request, self._scene.workload.timeout_s)
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(f"{what} has no answer: {error}") from None
        if status != wanted.expect_status:
            wrong = f"{what} is answered with {status}, and {wanted.expect_status} was expected"
            raise self._wrong(wrong, text)
        if wanted.expect_body not in text:
            raise self._wrong(f"the answer to {what} holds no '{wanted.expect_body}'", text)

    def _own(self) -> str:
        running = self._scene.residents.instance(self._scene.treatment, self._asked.variant)
        return f"http://{HOST}:{running.launch.port}"

    def _wrong(self, why: str, text: str) -> WrongAnswer:
        shown = " ".join(text.split())[:SHOWN]
        return WrongAnswer(
            f"variant '{self._asked.variant}' is compared with nothing: {why}"
            + (f" ('{shown}')" if shown else " (its body is empty)")
            + "; mend it, or say what is right (expect_status, expect_body)"
        )

    def _silent(self, why: str) -> LoadError | ServiceFailed:
        if self._asked.target:
            return LoadError(f"variant '{self._asked.variant}': {why}")
        running = self._scene.residents.instance(self._scene.treatment, self._asked.variant)
        return ServiceFailed(self._asked.variant, why, running.log())

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return nothing: the load checks every answer itself."""
        return Observation()


def _answer(request: urllib.request.Request, timeout_s: float) -> tuple[int, str]:
    try:
        with OPENER.open(request, timeout=timeout_s) as answer:
            return int(answer.status), answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(errors="replace")


class ServiceCost(Instrument):
    """CPU time per measured request and largest memory; nothing where the lab started no service.

    ``service_cpu_us_per_request`` counts all CPU of the service over the measured stage, and the
    requests that succeeded in it; ``failure_share`` is of measured requests.
    """

    shares_time: ClassVar = True

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _ServiceCost(scene)


class _ServiceCost(Look):
    def __init__(self, scene: Scene) -> None:
        self._names = list(scene.residents.active(scene.treatment))

    def observe(self, load: Load) -> Observation:
        """Return the columns that there are."""
        result = load.result
        measured = result.requests[result.requests["stage"] == "measure"]
        failed = int((measured["error"] != "").sum())
        columns = {"failure_share": failed / max(1, len(measured))}
        when = OnTime.of(result)
        for name in self._names:
            own = load.samples[load.samples["service"] == name]
            columns["service_cpu_us_per_request"] = cpu_us_per_success(own, result)
            columns["service_memory_bytes"] = largest_memory(own, when.begin_ns, when.end_ns)
        return Observation(columns)
