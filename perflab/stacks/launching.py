"""Starting residents until all of them can be used."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from perflab.errors import ServiceFailed, StackError
from perflab.stacks.asking import answers
from perflab.stacks.backend import Instance
from perflab.stacks.patience import Interrupted, go_on
from perflab.stacks.plan import Resident

LOOK_EVERY_S = 0.05
# A service dies of a dependency's death: by then the dependency's own end can be seen, too.
CAUSE_SEEN_WITHIN_S = 0.2


def start_all(
    residents: Sequence[Resident],
    start: Callable[[Resident], Instance],
    running: dict[str, Instance],
    interrupted: Interrupted,
) -> None:
    """Start residents, dependencies first; those of one level start side by side.

    ``running`` takes every instance by its name as soon as it is started, healthy or not. Raises as
    :func:`wait_healthy` does.
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
    """Wait until the named instances, of all that were started, dependencies first, are healthy.

    Raises ServiceFailed where one of the instances, waited for or not, has died, or one was not
    healthy in time.
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
                if asked.pop(name).result():
                    continue
                _refuse_late(waiting[name], began)
                asked[name] = pool.submit(is_healthy, waiting[name])
            time.sleep(LOOK_EVERY_S)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _refuse_late(instance: Instance, began: float) -> None:
    timeout_s = instance.launch.spec.health.timeout_s
    if time.monotonic() > began + timeout_s:
        name = instance.launch.labels.service
        raise ServiceFailed(name, f"was not healthy within {timeout_s:g} s", instance.log())


def refuse_dead(instances: Mapping[str, Instance], starting: Iterable[str] = ()) -> None:
    """Raise ServiceFailed, with its log, for the first instance that is not running.

    Dependencies come first: of several dead ones, the first is the cause. ``starting`` names those
    that were not healthy yet.
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
    if not health.command:
        return answers(instance.launch.control_port, health.http, any_status=health.any_status)
    try:
        instance.run(health.command, timeout_s=5.0)
    except StackError:
        return False
    return True
