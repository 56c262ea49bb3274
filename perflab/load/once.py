"""One load by itself, without an experiment: from the command line or from a notebook."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perflab.errors import LoadError
from perflab.host.lock import measurement_lock
from perflab.host.placement import placement
from perflab.load import report
from perflab.load.command import Options, workload
from perflab.load.generator import Generator
from perflab.load.selfcheck import check
from perflab.load.stopping import Progress
from perflab.load.workload import Workload


@contextmanager
def place(folder: Path | None = None) -> Iterator[Path]:
    """Yield where raw rows go: the result's own disk, or a temporary folder that is removed.

    Raises
    ------
    LoadError
        The place cannot be written.
    """
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            yield folder
            return
        made = Path(tempfile.mkdtemp(prefix="perflab-load-"))
    except OSError as error:
        raise LoadError(f"cannot write {error.filename}: {error.strerror}") from None
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


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
) -> tuple[dict[str, Any], list[str]]:
    """Send a workload; return its summary and the failures of its script, and write the record."""
    with place(out) as folder, ready(workers, wait_s) as generator:
        result = generator.run(made, url, on_progress, look, allowed, folder / "raw")
        shown = report.summary(result, made, check(result, made))
        if out is not None:
            report.write(out, result, made, shown, url)
        failures = result.failures
        result.discard()
    return shown, failures


def send(
    url: str, *, workers: int = 0, wait_s: float = 0.0, out: str = "", **options: Any
) -> dict[str, Any]:
    """Send load to an address and return what it showed; for notebooks.

    Parameters
    ----------
    url : str
        The address. Hosts other than loopback must be named in ``allow_targets``.
    **options
        As ``perflab load`` has them, with underscores (see ``command.Options``): ``users``,
        ``rate``, ``duration``, ``requests``, ``arrivals``, ``allow_targets``...

    Returns
    -------
    dict
        See ``report.summary``; ``valid`` says whether the numbers may be used.

    Raises
    ------
    ParameterError, TargetRefused
        Nothing was sent.
    """
    given = Options(url=url, **options)
    made = workload(given)
    folder = Path(out) if out else None
    shown, failures = carry_out(
        made, url, allowed=given.allow_targets, workers=workers, wait_s=wait_s, out=folder
    )
    return {**shown, "failures": failures}
