"""One load by itself, without an experiment: from the command line or from a notebook."""

from __future__ import annotations

import itertools
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyarrow import ArrowException

from perflab.errors import LoadError, ParameterError, PerflabError, RunInterrupted
from perflab.host.lock import measurement_lock
from perflab.host.placing import placement
from perflab.load import report
from perflab.load.checks.selfcheck import check
from perflab.load.options import LoadOptions
from perflab.load.records import record
from perflab.load.records.answers import ByName, answers_in
from perflab.load.records.columns import REQUESTS
from perflab.load.records.message_record import FILE as MESSAGES
from perflab.load.records.record import Place, folder_problems, place
from perflab.load.summary import LoadSummary
from perflab.load.workers.generator import Generator, Progress, StopLoad
from perflab.load.workload.arrivals import Burst, ClosedLoop, Scripted
from perflab.load.workload.workload import (
    CHECKS_S,
    LEAST_CHECKS,
    MOST_CHECKS,
    Workload,
    one_user,
)

INTERRUPTION = "interrupted"
# How long requests under way may still be answered after the first signal.
GIVE_UP_S = 1.0


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Yield a check that ends the load in order after a signal, after a second one at once.

    The signals are SIGINT, SIGTERM and, unless nohup ignores it, SIGHUP. Outside of the main thread
    they do not arrive, and it does nothing.
    """
    received: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    ending = {signal.SIGINT, signal.SIGTERM}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ending.add(signal.SIGHUP)
    handlers = {
        number: signal.signal(number, lambda number, _: received.append(number))
        for number in ending
        if is_main
    }

    def check_stop() -> None:
        if received:
            raise StopLoad(INTERRUPTION, GIVE_UP_S if len(received) == 1 else 0.0)

    try:
        yield check_stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def ready(
    workers: int = 0, wait_s: float = 0.0, check_stop: Callable[[], None] = lambda: None
) -> Iterator[Generator]:
    """Hold the host's lock and keep load workers on the client's cores (0: one on each).

    StopLoad of ``check_stop`` ends the wait for the lock with RunInterrupted. Raise ParameterError
    for a negative number.
    """
    if workers < 0:
        raise ParameterError("perflab load", [f"--workers {workers} is negative"])

    def go_on() -> None:
        try:
            check_stop()
        except StopLoad as stop:
            raise RunInterrupted(f"{stop} while it waited for another measurement") from None

    places = placement()
    cores = places.client
    worker_cores = [cores[number % len(cores)] for number in range(workers or len(cores))]
    # If workers share a core, one with real-time priority keeps the others from it.
    apart = places.client_apart and len(set(worker_cores)) == len(worker_cores)
    with measurement_lock("perflab load", wait_s, go_on=go_on):
        generator = Generator(worker_cores, {}, real_time=apart)
        try:
            generator.start()
            yield generator
        finally:
            generator.close()


def carry_out(
    workload: Workload,
    url: str,
    *,
    allowed: Sequence[str] = (),
    workers: int = 0,
    wait_s: float = 0.0,
    out: Path | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    check_stop: Callable[[], None] = lambda: None,
) -> LoadSummary:
    """Send a workload, sum it up and write the record.

    Raises
    ------
    PerflabError
        Nothing was sent; or the recorded part is kept, and the message says where.
    """
    with place(out, workload) as record_place, ready(workers, wait_s, check_stop) as generator:
        try:
            checked = checked_answers(generator, workload, url, allowed, check_stop)
            result = generator.run(
                workload, url, on_progress, check_stop, allowed, record_place.raw
            )
            summary = report.summary(result, workload, check(result, workload), checked)
        except Exception as error:
            files = (record_place.raw.glob(f"*/{name}") for name in (REQUESTS, MESSAGES))
            if not any(file.stat().st_size for file in itertools.chain(*files)):
                shutil.rmtree(record_place.raw, ignore_errors=True)
                raise
            record_place.keep = True
            raise LoadError(f"{_error_text(error)}; {_where_kept(record_place)}") from error
        if out is not None:
            try:
                record.write(record_place.folder, result, workload, summary, url)
            except (OSError, ArrowException) as error:
                record_place.keep = True
                text = f"the record could not be written ({_error_text(error)})"
                unwritten = f"{text}; {_where_kept(record_place)}"
                summary = summary.model_copy(update={"unwritten": unwritten})
        if not record_place.keep:
            result.discard()
    return summary


def checked_answers(
    generator: Generator,
    workload: Workload,
    url: str,
    allowed: Sequence[str],
    check_stop: Callable[[], None],
) -> ByName | None:
    """Return the answers to one user, asked twenty times for two seconds, but three times at least.

    None where the load itself has to show them: scripted users, a burst, or a number of requests
    that was asked for; or where each answer is held against an expected body.
    """
    arrivals = workload.arrivals
    has_own = isinstance(arrivals, Scripted | Burst)
    has_own |= isinstance(arrivals, ClosedLoop) and arrivals.requests > 0
    if has_own or workload.is_judged:
        return None
    finished, latest_s = 0, time.monotonic() + CHECKS_S

    def note(progress: Progress) -> None:
        nonlocal finished
        finished = progress.finished

    def end() -> None:
        check_stop()
        if finished >= LEAST_CHECKS and time.monotonic() > latest_s:
            raise StopLoad("enough was checked")

    result = generator.run(one_user(workload, MOST_CHECKS), url, note, end, allowed)
    try:
        return answers_in(result)
    finally:
        result.discard()


def _error_text(error: Exception) -> str:
    if isinstance(error, PerflabError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _where_kept(record_place: Place) -> str:
    return (
        f"the requests so far are kept in {record_place.raw}: a folder for each worker; "
        "perflab.load.records.columns.frame(FOLDER, 0) reads one"
    )


def send(
    url: str, *, workers: int = 0, wait_s: float = 0.0, out: str = "", **options: Any
) -> LoadSummary:
    """Send load to an address and return its summary; for notebooks.

    ``out`` is a new folder for the record. ``options`` are those of ``perflab load``, with
    underscores (see ``options.LoadOptions``): ``users``, ``rate``, ``duration``... Hosts other than
    loopback must be named in ``allow_targets``. In the summary ``valid`` says whether the numbers
    may be used. An interrupt ends the load in order, ``stopped`` then says so, and the cell goes
    on. Raises ParameterError or TargetRefused if nothing was sent.
    """
    load_options = LoadOptions.of({"url": url, **options})
    workload = load_options.workload()
    folder = Path(out) if out else None
    if folder and (problems := folder_problems("out", folder)):
        raise ParameterError("perflab load", problems)
    with interruptible() as check_stop:
        return carry_out(
            workload,
            load_options.url,
            allowed=load_options.allow_targets,
            workers=workers,
            wait_s=wait_s,
            out=folder,
            check_stop=check_stop,
        )
