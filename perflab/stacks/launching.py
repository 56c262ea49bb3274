"""Start residents until all are healthy; speak HTTP with them, past the environment's proxies."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import Any

from perflab.credentials import resolved
from perflab.errors import MachineShort, ServiceFailed, StackError
from perflab.host.shortages import told
from perflab.stacks.backend import HOST, Instance, Interrupted, go_on
from perflab.stacks.hints import with_hints
from perflab.stacks.plan import Node
from perflab.stacks.spec import Value


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Returns a redirect as the answer: following it could lead to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())
ANSWER_BYTES = 16 * 1024 * 1024


def answers(port: int, path: str, timeout_s: float = 2.0, any_status: bool = False) -> bool:
    """Tell whether a GET is answered with 200, or with ``any_status`` below 500.

    Raises MachineShort where it cannot be asked.
    """
    try:
        status, _ = exchange(port, "GET", path, None, timeout_s)
    except MachineShort:
        raise
    except StackError:
        return False
    return status < 500 if any_status else status == 200


def ask(port: int, path: str, body: Mapping[str, Value] | None = None) -> dict[str, Any]:
    """GET, or PUT when a body is given, and return the JSON object that comes back.

    Raises StackError where there is no answer, no success, or no JSON object.
    """
    status, text = exchange(port, "GET" if body is None else "PUT", path, body, 10.0)
    where = f"http://{HOST}:{port}{path}"
    if not 200 <= status < 300:
        raise StackError(f"{where}: HTTP Error {status}: {text[:500]}")
    try:
        return dict(json.loads(text or "{}"))
    except (ValueError, TypeError):
        raise StackError(f"{where} did not answer with a JSON object: {text[:500]}") from None


def exchange(port: int, method: str, path: str, body: Any, timeout_s: float) -> tuple[int, str]:
    """Send one request and return status and text, of errors too; ``body`` None sends no JSON.

    Raises StackError where nobody answers in time.
    """
    request = urllib.request.Request(
        f"http://{HOST}:{port}{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Content-Type": "application/json"},
    )
    try:
        with OPENER.open(request, timeout=timeout_s) as answer:
            return int(answer.status), answer.read(ANSWER_BYTES).decode(errors="replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(ANSWER_BYTES).decode(errors="replace")
    except (OSError, ValueError, HTTPException) as error:
        if shortage := told(error):
            raise MachineShort(
                f"{method} http://{HOST}:{port}{path} not sent: {shortage}"
            ) from None
        raise StackError(f"http://{HOST}:{port}{path}: {error}") from None


LOOK_EVERY_S = 0.05
# A service dies of a dependency's death: after this time the dependency's own end is visible.
CAUSE_SEEN_WITHIN_S = 0.2


def start_all(
    residents: Sequence[Node],
    start: Callable[[Node], Instance],
    running: dict[str, Instance],
    interrupted: Interrupted,
) -> None:
    """Start residents, dependencies first; those of one level start side by side.

    Every instance is put into ``running``, by name, as soon as it is started, healthy or not.
    """
    waiting = list(residents)
    while waiting:
        level = [item for item in waiting if set(item.needs.values()) <= set(running)]
        for resident in level:
            running[resident.name] = start(resident)
        wait_healthy([resident.name for resident in level], running, interrupted)
        waiting = [item for item in waiting if item not in level]


def wait_healthy(
    names: Iterable[str], instances: Mapping[str, Instance], interrupted: Interrupted
) -> None:
    """Wait until the instances ``names`` are healthy.

    ``instances`` are all that were started, dependencies first. Raises ServiceFailed where any of
    them has died, or one of ``names`` was not healthy in time.
    """
    waiting = {name: instances[name] for name in names}
    began = time.monotonic()
    pool = ThreadPoolExecutor(max_workers=len(waiting))
    checks = {name: pool.submit(is_healthy, item) for name, item in waiting.items()}
    try:
        while checks:
            refuse_dead(instances, waiting)
            go_on(interrupted, "while services started")
            for name in [name for name, answer in checks.items() if answer.done()]:
                check = checks.pop(name)
                if isinstance(check.exception(), MachineShort) or not check.result():
                    _refuse_late(name, waiting[name], began, check.exception())
                    checks[name] = pool.submit(is_healthy, waiting[name])
            time.sleep(LOOK_EVERY_S)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _refuse_late(
    name: str, instance: Instance, began: float, shortage: BaseException | None
) -> None:
    timeout_s = instance.launch.spec.health.timeout_s
    if time.monotonic() > began + timeout_s:
        if shortage:
            raise shortage
        text = with_hints(f"was not healthy within {timeout_s:g} s", instance)
        raise ServiceFailed(name, text, instance.log())


def refuse_dead(instances: Mapping[str, Instance], starting: Iterable[str] = ()) -> None:
    """Raise ServiceFailed, with the log, for the first instance that has ended: it is the cause.

    ``instances`` are dependencies first; ``starting`` names those that were not healthy yet.
    """
    if not any(instance.exit_reason() for instance in instances.values()):
        return
    time.sleep(CAUSE_SEEN_WITHIN_S)
    for name, instance in instances.items():
        reason = instance.exit_reason()
        if reason:
            if name in starting:
                reason = with_hints(f"ended before it was healthy: it {reason}", instance)
            raise ServiceFailed(name, reason, instance.log())


def is_healthy(instance: Instance) -> bool:
    """Ask a service once whether it can be used."""
    health = instance.launch.spec.health
    if not health.command:
        path = resolved(health.http)
        return answers(instance.launch.control_port, path, any_status=health.any_status)
    try:
        instance.run(health.command, timeout_s=5.0)
    except StackError:
        return False
    return True
