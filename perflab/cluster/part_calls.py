"""The parts of loads that this worker's host holds: the task that is one, and the calls to it.

Calls are carried out by the worker's event loop while the thread of the task works. A token tells
parts apart.
"""

from __future__ import annotations

from collections.abc import Callable

from perflab.cluster.load_part import Part, PartOrder, Seen, Sent
from perflab.errors import PerflabError

_PARTS: dict[str, Part] = {}


def hold(token: str, workers: int, wait_s: float) -> str:
    """Be a host's part until it is told to end; the task of a worker.

    Returns
    -------
    str
        Why it failed; empty where it was told to end.
    """
    part = _PARTS[token] = Part(_waited_for())
    try:
        with part.ready(workers, wait_s) as generator:
            part.serve(generator)
    except PerflabError as error:
        return str(error)
    except Exception as error:  # whoever asked must hear of it, whatever it was
        return f"{type(error).__name__}: {error}"
    finally:
        del _PARTS[token]
        part.close()
    return ""


def _waited_for() -> Callable[[], bool]:
    """Return what says whether the task of this thread is still wanted."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:
        # Dask forgets a task that is cancelled, but leaves its thread to it.
        task = worker.state.tasks.get(key)
        return task is not None and task.state not in ("cancelled", "released", "forgotten")

    return is_wanted


def end_parts(why: str) -> None:
    """Have every part on this worker end, as one that failed."""
    for part in list(_PARTS.values()):
        part.end(why)


def hear(token: str) -> None:
    """Tell a part, if it is there, that whoever asked for it still is."""
    if token in _PARTS:
        _PARTS[token].hear()


def see(token: str) -> Seen | None:
    """Return what a part is at; None where it has not begun, or has ended."""
    hear(token)
    return _PARTS[token].see() if token in _PARTS else None


def take(token: str, order: PartOrder) -> None:
    """Give a part an order."""
    _PARTS[token].take(order)


def stop(token: str, reason: str, within_s: float | None) -> None:
    """Have the load that is under way end in order."""
    if token in _PARTS:
        _PARTS[token].stop(reason, within_s)


def end(token: str) -> None:
    """Have a part end."""
    if token in _PARTS:
        _PARTS[token].end()


def sent(token: str) -> Sent:
    """Return what the last load of a part left."""
    hear(token)
    return _PARTS[token].sent()


def piece(token: str, worker: int, name: str, offset: int) -> bytes:
    """Return a piece of a raw file that a part has."""
    hear(token)
    return _PARTS[token].piece(worker, name, offset)
