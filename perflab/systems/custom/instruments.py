"""Instruments of variants: a check of the answer, and the service's cost of a request."""

from __future__ import annotations

import hashlib
import http.client
import math
import random
import re
import socket
import time
import urllib.error
import urllib.request
from typing import ClassVar

import pandas as pd

from perflab.analysis.doubts.unseen_answers import (
    CHECK,
    CLASS_COLUMNS,
    FIRST,
    LOAD,
    TABLE,
    answer_rows,
)
from perflab.credentials import masked, names_in
from perflab.errors import LoadError, MachineShort, ServiceFailed, WrongAnswer, last_lines
from perflab.host.meters import ProcessTable
from perflab.host.shortages import told
from perflab.instruments import Instrument, Load, Observation, Sensor
from perflab.instruments.requests import time_columns
from perflab.load.body_secrets import shown_answer
from perflab.load.clients.encodings import in_order, unpacked
from perflab.load.clients.targets import refuse_foreign, split
from perflab.load.literals import by_reference
from perflab.load.records.answers import answers_in, first_answers
from perflab.load.secret_names import OF_REQUESTS
from perflab.load.workload.arrivals import Scripted
from perflab.load.workload.mix import filled, has_placeholders
from perflab.load.workload.request import Request
from perflab.load.workload.workload import CHECKS_S, LEAST_CHECKS, MOST_CHECKS, one_user
from perflab.recordings import Remark
from perflab.recordings.responses import (
    FAILURES,
    MEMORY_UNKNOWN,
    OF_ALL,
    growth_column,
    of_request,
    requests_column,
    resolution_column,
)
from perflab.stacks.asking import OPENER
from perflab.stacks.backend import HOST
from perflab.stacks.plan import StackPlan
from perflab.statistics.quantiles import OF_TRIALS
from perflab.trials.summary import cpu_per_success, memory_growth

CPU, MEMORY = "service_cpu_us_per_request", "service_memory_bytes"
LONGEST_EXCERPT = 200
CONNECTED_WITHIN_S = 5.0
UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
REFUSED, NOT_THERE = (401, 403), (404, 405)
NAME_THE_PATH = "name the path that users ask for (--path, or path or [[load.requests]] in a file)"
# Of the digest of a body: enough to tell bodies apart.
DIGITS = 16


class _RightAnswer(Sensor["RightAnswer"]):
    def before(self) -> None:
        self._longest_s, self._checked = 0.0, pd.DataFrame()
        refuse_foreign(self.settings.target or self._local_address(), self.settings.allowed)
        self._columns: dict[str, float | str] = {}
        if isinstance(self.scene.workload.arrivals, Scripted):
            # Only a script knows what its users ask for, and they may sign up but once.
            return
        contents = [self._content(each) for each in self.scene.workload.requests]
        # A request may hold an UUID, which some services repeat in their answer.
        alike = b"".join(UUID.sub(b"", content) for content in contents)
        digest = hashlib.sha256(alike).hexdigest()[:DIGITS]
        self._columns = {"answer_bytes": sum(map(len, contents)), "answer_digest": digest}
        if not self.scene.workload.is_judged:
            number = round(min(MOST_CHECKS, max(LEAST_CHECKS, CHECKS_S / self._longest_s)))
            load = one_user(self.scene.workload, number * len(contents))
            result = self.scene.send(load)
            self._checked = answer_rows(CHECK, answers_in(result))
            result.discard()

    def _sample(self, request: Request) -> Request:
        """Return a request with values for its placeholders."""
        numbers = random.Random(self.scene.workload.seed)
        sent = request.with_credentials()
        if self.scene.workload.mix and has_placeholders(sent):
            sent = filled(sent, numbers, user=0)
            # A credential that a file gave is masked from now on.
            by_reference({"path": sent.path, "headers": sent.headers, "body": sent.body})
        return sent

    def _content(self, asked: Request) -> bytes:
        """Send a request, and return what it is answered with if that is what is expected."""
        template = self._sample(asked)
        address = self.settings.target or self._local_address()
        body = template.bodies[0] or None
        # urllib would send another type than the load does.
        headers = {"Content-Type": template.usual_type} if body else {}
        headers |= template.headers
        # urllib would encode them as Latin-1 where the load has UTF-8.
        headers = {name: text.encode().decode("latin-1") for name, text in headers.items()}
        request = urllib.request.Request(
            address + template.path, body, headers, method=template.method
        )
        # Values of placeholders are not shown: they may be credentials.
        what = f"{template.method} {masked(asked.path)}"
        began_s = time.monotonic()
        try:
            status, content, unread = _answer(request, self.scene.workload.timeout_s)
        except (OSError, http.client.HTTPException) as error:
            if shortage := told(error):
                raise MachineShort(f"{what} was not sent: {shortage}") from None
            raise self._no_answer(f"{what} got no answer: {error}") from None
        self._longest_s = max(self._longest_s, time.monotonic() - began_s)
        text = content.decode(errors="replace")
        if not template.expects(status):
            expected = " or ".join(map(str, template.statuses))
            problem = f"the answer to {what} has status {status} instead of {expected}"
            way_out = self._refused(asked) if status in REFUSED else ""
            raise self._wrong(problem, text, NAME_THE_PATH if status in NOT_THERE else way_out)
        if template.expect_body and (unread or template.expect_body not in text):
            expected = masked(template.expect_body)
            problem = f"the answer to {what} does not contain '{expected}'"
            raise self._wrong(
                f"the body of {what} is not read: {unread}" if unread else problem, text
            )
        return content

    def _local_address(self) -> str:
        running = self.scene.instance(self.settings.variant)
        return f"http://{HOST}:{running.launch.port}"

    def _wrong(self, why: str, text: str, way_out: str = "") -> WrongAnswer:
        # A credential that was cut off could not be found later.
        excerpt = " ".join(shown_answer(text).split())[:LONGEST_EXCERPT]
        way_out = way_out or "mend the variant, or change expect_status or expect_body"
        problem = (
            f"variant '{self.settings.variant}' gives another answer than expected: {why}"
            + (f" ('{excerpt}')" if excerpt else " (its body is empty)")
            + f"; {way_out}"
        )
        if self.settings.target:
            return WrongAnswer(problem)
        log = self.scene.instance(self.settings.variant).log()
        return WrongAnswer(f"{problem}\n{last_lines(log)}")

    def _refused(self, asked: Request) -> str:
        """Return which credentials were refused, and where they would have to be known."""
        sent = ", ".join(f"{name}: {text}" for name, text in asked.headers.items()
                         if names_in(text) or OF_REQUESTS.search(text))  # fmt: skip
        nothing = "no header with credentials was sent (-H 'Authorization: env:NAME')"
        refused = f"it refused the credentials: {f'sent was {sent}' if sent else nothing}"
        if self.settings.target:
            return refused
        running = self.scene.instance(self.settings.variant)
        store = "; its store holds only what setup made" * bool(running.launch.spec.needs)
        return refused + store

    def _no_answer(self, why: str) -> LoadError | ServiceFailed:
        if self.settings.target:
            return LoadError(f"variant '{self.settings.variant}': {why}")
        running = self.scene.instance(self.settings.variant)
        return ServiceFailed(self.settings.variant, why, running.log())

    def observe(self, load: Load) -> Observation:
        """Return the columns, and the classes of the answers to one user and under load."""
        if load.workload.is_judged:
            return Observation(self._columns)
        loaded = answer_rows(LOAD, answers_in(load.result))
        if isinstance(load.workload.arrivals, Scripted):
            self._checked = answer_rows(FIRST, first_answers(load.result))
        rows = [table for table in (self._checked, loaded) if len(table)]
        return Observation(self._columns, {TABLE: pd.concat(rows)} if rows else {})


class RightAnswer(Instrument):
    """Sends each of the workload's requests once; ends the run if an answer is not as expected.

    Unless each answer is held against an expected body, one user then asks up to twenty times, two
    seconds long at most but three times at least. The table ``answers`` has the classes of these
    answers and of those under load (:mod:`perflab.analysis.doubts.answer_classes`). Of a script
    nothing is sent before its load: the first twenty answers of each name stand for the check.

    A missing answer fails only the trial, because a variant that died may run after a new start.
    ``target`` is the address of the variant, or empty if the lab started it. The columns
    ``answer_bytes`` and ``answer_digest`` are of the body, unpacked by its Content-Encoding where
    that can be; variants are compared by them.
    """

    at_work: ClassVar = _RightAnswer
    tables: ClassVar = {TABLE: CLASS_COLUMNS}
    shares_time: ClassVar = True

    variant: str
    target: str = ""
    allowed: tuple[str, ...] = ()

    def check_usable(self, stack: StackPlan) -> None:  # noqa: ARG002
        """Raise LoadError where nobody listens at the target."""
        if not self.target:
            return
        refuse_foreign(self.target, self.allowed)
        origin = split(self.target)[0]
        try:
            socket.create_connection((origin.host, origin.port), CONNECTED_WITHIN_S).close()
        except OSError as error:
            raise LoadError(
                f"variant '{self.variant}': nobody answers at {origin.host}:{origin.port} "
                f"({error}): start it first"
            ) from None


def _answer(request: urllib.request.Request, timeout_s: float) -> tuple[int, bytes, str]:
    """Return status and content of an answer, and why its body could not be unpacked.

    TimeoutError where it has not ended in time: each read may wait as long, and a stream goes on.
    """
    until_s = time.monotonic() + timeout_s
    try:
        answer = OPENER.open(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        pieces = []
        while piece := answer.read1():
            pieces.append(piece)
            if time.monotonic() > until_s:
                raise TimeoutError(f"its body did not end within {timeout_s:g} s")
        body = b"".join(pieces)
        if answer.length:
            raise http.client.IncompleteRead(body, answer.length)
        encoding = in_order(answer.headers.get_all("Content-Encoding", ()))
    content, unread = unpacked(body, encoding) if encoding else (body, "")
    return int(answer.status), body if unread else content, unread


class ByRequest(Instrument):
    """Sums up the requests of a load that has several, by their names.

    The columns are those of :func:`perflab.recordings.responses.of_request`, with the ends and
    marks that times have.
    """

    shares_time: ClassVar = True

    names: tuple[str, ...]

    def observe(self, load: Load) -> Observation:
        """Return the columns; those of a name that was not sent are NaN."""
        columns: dict[str, float] = {}
        for name in self.names:
            codes = load.result.codes.get(name, {})
            numbers = load.result.times("planned_ns", chosen=codes).numbers(OF_TRIALS)
            named = {of_request(f"{of}_ms", name): numbers[of] for of in ("mean", "p99")}
            columns |= time_columns(named)
            failed, column = load.result.named(name)["error"] != 0, of_request(FAILURES, name)
            step = 1 / len(failed) if len(failed) else math.nan
            columns |= {column: float(failed.sum()) * step, resolution_column(column): step}
        return Observation(columns)


class _ServiceCost(Sensor["ServiceCost"]):
    def after(self) -> None:
        table = ProcessTable()
        self._memory_bytes, self._unknown = float("nan"), list[Remark]()
        name = self.scene.workload.request.node
        if not name:
            return
        try:
            self._memory_bytes = self.scene.instance(name).meter().held_bytes(table)
        except OSError as error:
            text = f"service '{name}': the memory that it holds is not known ({error})"
            self._unknown.append(Remark(code=MEMORY_UNKNOWN, text=text))

    def observe(self, load: Load) -> Observation:
        result = load.result
        measured = result.requests[result.requests["stage"] == "measure"]
        failed = int((measured["error"] != "").sum())
        step = 1 / max(1, len(measured))
        columns = {FAILURES: failed * step, resolution_column(FAILURES): step}
        if name := load.workload.request.node:
            samples = load.samples[load.samples["service"] == name]
            columns |= self._cpu(load)
            # Without samples other processes answered, and these are not the service.
            columns[MEMORY] = float("nan") if samples.empty else self._memory_bytes
            columns[growth_column(MEMORY)] = memory_growth(samples, result)
            columns[requests_column(MEMORY)] = len(result.requests)
        return Observation(columns, warnings=self._unknown)

    def _cpu(self, load: Load) -> dict[str, float]:
        """Return the CPU of a request: of the service, and of all that it needs."""
        whole: dict[str, float] = {}
        shared = [name for name in load.samples["service"].unique() if name.startswith(OF_ALL)]
        for name in (*self.scene.services, *shared):
            samples = load.samples[load.samples["service"] == name]
            for column, value in cpu_per_success(CPU, samples, load.result).items():
                whole[column] = whole.get(column, 0.0) + value
        return whole


class ServiceCost(Instrument):
    """CPU time per measured request, and memory after the load, of a service that the lab started.

    ``service_cpu_us_per_request`` is all CPU of the service, and of the stores that it needs or may
    use, in the measured stage over the requests that succeeded in it; ``failure_share`` is of
    measured requests, in steps of one request.
    ``service_memory_bytes`` is read once, after the load: of processes what they share once, of
    containers that of their control group (:mod:`perflab.host.meters`). Beside it stand its
    growth with a request, by samples of resident memory, and the requests that were sent before.
    """

    at_work: ClassVar = _ServiceCost
    shares_time: ClassVar = True
