"""Waiting until services can be used, with an eye on all of those that were started."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from perflab.errors import ServiceFailed, StackError
from perflab.stacks.asking import answers
from perflab.stacks.backend import Instance
from perflab.stacks.patience import Interrupted, go_on

LOOK_EVERY_S = 0.05
# A service dies of a dependency's death: by then the dependency's own end can be seen, too.
CAUSE_SEEN_WITHIN_S = 0.2


def wait_healthy(
    names: Iterable[str], instances: Mapping[str, Instance], interrupted: Interrupted
) -> None:
    """Wait until the named instances are healthy.

    Parameters
    ----------
    instances : mapping
        Everything that was started so far, dependencies first.

    Raises
    ------
    ServiceFailed
        One of the instances, waited for or not, has died, or one was not healthy in time.
    RunInterrupted
        The user wants to end.
    """
    waiting = {name: instances[name] for name in names}
    began = time.monotonic()
    pool = ThreadPoolExecutor(max_workers=len(waiting))
    asked = {name: pool.submit(is_healthy, item) for name, item in waiting.items()}
    try:
        while asked:
            refuse_dead(instances, waiting)
            go_on(interrupted, "while services started")
            for name in [name for name, answer in asked.items() if answer.done()]:
                _take(name, asked, waiting[name], began)
                if name in asked:
                    asked[name] = pool.submit(is_healthy, waiting[name])
            time.sleep(LOOK_EVERY_S)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _take(name: str, asked: dict[str, Future[bool]], instance: Instance, began: float) -> None:
    """Take an answer; the question is dropped when the service is healthy."""
    timeout_s = instance.launch.spec.health.timeout_s
    if asked[name].result():
        del asked[name]
    elif time.monotonic() > began + timeout_s:
        raise ServiceFailed(name, f"was not healthy within {timeout_s:g} s", instance.log())


def refuse_dead(instances: Mapping[str, Instance], starting: Iterable[str] = ()) -> None:
    """Raise ServiceFailed, with its log, for the first instance that is not running.

    Parameters
    ----------
    instances : mapping
        Dependencies first: of several dead ones, the first is the cause.
    starting : iterable of str
        Those that were not healthy yet.
    """
    if not any(instance.exit_reason() for instance in instances.values()):
        return
    time.sleep(CAUSE_SEEN_WITHIN_S)
    for name, instance in instances.items():
        reason = instance.exit_reason()
        if reason:
            told = f"died while starting: it {reason}" if name in starting else reason
            raise ServiceFailed(name, told, instance.log())


def is_healthy(instance: Instance) -> bool:
    """Ask a service once whether it can be used."""
    health = instance.launch.spec.health
    if health.command:
        try:
            instance.run(health.command, timeout_s=5.0)
        except StackError:
            return False
        return True
    port = instance.launch.control_port
    return answers(port, health.http, any_status=health.any_status)
