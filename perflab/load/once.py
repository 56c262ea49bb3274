"""One load by itself, without an experiment: from the command line or from a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import ArrowException

from perflab.errors import LoadError, ParameterError, PerflabError
from perflab.host.lock import measurement_lock
from perflab.host.placing import placement
from perflab.load import report
from perflab.load.checks.selfcheck import check
from perflab.load.options import LoadOptions
from perflab.load.records import record
from perflab.load.records.record import Place, folder_problems, place
from perflab.load.workers.generator import Generator, Progress
from perflab.load.workload.workload import Workload


@contextmanager
def ready(workers: int = 0, wait_s: float = 0.0) -> Iterator[Generator]:
    """Hold the host's lock and keep load workers on the client's cores (0: one on each)."""
    places = placement()
    cores = places.client
    bound = [cores[number % len(cores)] for number in range(workers or len(cores))]
    # Of workers that share a core, the first would keep the others from it.
    apart = places.client_apart and len(set(bound)) == len(bound)
    with measurement_lock("perflab load", wait_s):
        generator = Generator(bound, {}, real_time=apart)
        try:
            generator.start()
            yield generator
        finally:
            generator.close()


@dataclass(frozen=True)
class Carried:
    """A load that was sent.

    ``shown`` is its summary; ``failures`` are tracebacks of its script; ``unwritten`` says why its
    record is not whole, and where what there is of it lies.
    """

    shown: dict[str, Any]
    failures: list[str]
    unwritten: str = ""


def carry_out(
    made: Workload,
    url: str,
    *,
    allowed: Sequence[str] = (),
    workers: int = 0,
    wait_s: float = 0.0,
    out: Path | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    look: Callable[[], None] = lambda: None,
) -> Carried:
    """Send a workload, sum it up and write the record.

    Raises
    ------
    PerflabError
        Nothing was sent; or what was recorded is kept, and the message says where.
    """
    with place(out, made) as here, ready(workers, wait_s) as generator:
        try:
            result = generator.run(made, url, on_progress, look, allowed, here.raw)
            shown = report.summary(result, made, check(result, made))
        except Exception as error:
            if not here.has_rows():
                raise
            here.keep = True
            raise LoadError(f"{_told(error)}; {_kept(here)}") from error
        failures, unwritten = result.failures, ""
        if out is not None:
            try:
                record.write(here.folder, result, made, shown, url)
            except (OSError, ArrowException) as error:
                here.keep = True
                unwritten = f"the record could not be written ({_told(error)}); {_kept(here)}"
        if not here.keep:
            result.discard()
    return Carried(shown, failures, unwritten)


def _told(error: Exception) -> str:
    if isinstance(error, PerflabError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _kept(here: Place) -> str:
    return (
        f"what was recorded is kept in {here.raw}: a folder for each worker, which "
        "perflab.load.records.columns.frame(FOLDER, 0) reads"
    )


def send(
    url: str, *, workers: int = 0, wait_s: float = 0.0, out: str = "", **options: Any
) -> dict[str, Any]:
    """Send load to an address and return what it showed; for notebooks.

    Parameters
    ----------
    url : str
        The address. Hosts other than loopback must be named in ``allow_targets``.
    out : str
        New folder for the record.
    **options
        As ``perflab load`` has them, with underscores (see ``options.LoadOptions``): ``users``,
        ``rate``, ``duration``, ``requests``, ``arrivals``, ``allow_targets``...

    Returns
    -------
    dict
        See ``report.summary``; ``valid`` says whether the numbers may be used, ``failures`` are
        tracebacks of a script, ``unwritten`` says why the record is not whole.

    Raises
    ------
    ParameterError, TargetRefused
        Nothing was sent.
    """
    asked = LoadOptions.of({"url": url, **options})
    made = asked.workload()
    folder = Path(out) if out else None
    if folder and (problems := folder_problems("out", folder)):
        raise ParameterError("perflab load", problems)
    carried = carry_out(
        made, url, allowed=asked.allow_targets, workers=workers, wait_s=wait_s, out=folder
    )
    return {**carried.shown, "failures": carried.failures, "unwritten": carried.unwritten}
