"""Starts residents, and waits until all are healthy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from perflab.credentials import filled_in
from perflab.errors import MachineShort, ServiceFailed, StackError
from perflab.stacks.asking import ANSWERS_WITHIN_S, keeps_connections, status_of
from perflab.stacks.backend import HOST, Instance
from perflab.stacks.commands import Interrupted, go_on
from perflab.stacks.hints import with_hints
from perflab.stacks.plan import Node

POLL_EVERY_S = 0.05
# A check that is under way at the end of a service's time to start has so long for its answer.
LAST_CHECK_S = 2.0
# A service dies of a dependency's death: after this time the dependency's own end is visible.
CAUSE_SEEN_WITHIN_S = 0.2
BAD_REQUEST = 400


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
            go_on(interrupted, "before services started")
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
    asked, answers = dict.fromkeys(waiting, began), dict.fromkeys(waiting, "")
    pool = ThreadPoolExecutor(max_workers=len(waiting))
    checks = {name: pool.submit(ask_health, item) for name, item in waiting.items()}
    try:
        while checks:
            refuse_dead(instances, waiting)
            go_on(interrupted, "while services started")
            for name, check in [*checks.items()]:
                instance, now = waiting[name], time.monotonic()
                if not check.done():
                    if (unanswered_s := now - asked[name]) > LAST_CHECK_S:
                        answer = answers[name] or _no_answer(instance, unanswered_s)
                        _refuse_late(name, instance, began, None, answer)
                    continue
                del checks[name]
                error = check.exception()
                shortage = error if isinstance(error, MachineShort) else None
                is_healthy, answers[name] = (False, "") if shortage else check.result()
                if not is_healthy:
                    _refuse_late(name, instance, began, shortage, answers[name])
                    checks[name], asked[name] = pool.submit(ask_health, instance), now
            time.sleep(POLL_EVERY_S)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _refuse_late(
    name: str, instance: Instance, began: float, shortage: MachineShort | None, answer: str
) -> None:
    timeout_s = instance.launch.spec.health.timeout_s
    if time.monotonic() > began + timeout_s:
        if shortage:
            raise shortage
        text = f"was not healthy within {timeout_s:g} s"
        # Who answers is no stranger to the port, and its status says more than any hint.
        text = f"{text}: {answer}" if answer else with_hints(text, instance)
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


def ask_health(instance: Instance) -> tuple[bool, str]:
    """Ask a service once whether it can be used; return with it what another answer was."""
    health = instance.launch.spec.health
    if health.http:
        asked = time.monotonic()
        path = filled_in(health.http)
        status = status_of(instance.launch.control_port, path, ANSWERS_WITHIN_S)
        if status is None:
            # Where nobody listens it is known at once.
            is_listening = time.monotonic() - asked >= ANSWERS_WITHIN_S
            return False, _no_answer(instance, ANSWERS_WITHIN_S) if is_listening else ""
        is_healthy = status < 500 if health.any_status else status == 200
        return is_healthy, "" if is_healthy else _other_status(instance, status)
    if not health.command:
        return keeps_connections(instance.launch.port), ""
    try:
        instance.run(health.command, timeout_s=5.0)
    except StackError:
        return False, ""
    return True, ""


def _no_answer(instance: Instance, within_s: float) -> str:
    """Return that a path did not answer; empty where the health check asks for none."""
    spec = instance.launch.spec
    if not spec.health.http:
        return ""
    text = f"GET {spec.health.http} did not answer within {within_s:.3g} s"
    return f"{text}: give a path that answers sooner (--health PATH)" if spec.of_user else text


def _other_status(instance: Instance, status: int) -> str:
    """Return that a health check has another answer; of a user's service, what to change."""
    spec = instance.launch.spec
    text = f"GET {spec.health.http} is answered with {status}"
    if spec.of_user and status == BAD_REQUEST:
        return f"{text}: it may refuse the host {HOST} (Django: ALLOWED_HOSTS)"
    # A service that is not ready yet answers its own health path with 503.
    if spec.of_user and spec.health.any_status:
        return f"{text}: give the path that answers 200 when it is ready (--health PATH)"
    return f"{text}: mend health (--health PATH)" if spec.of_user and status < 500 else text
