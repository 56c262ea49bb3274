"""Events of a run, followed from outside of the notebook's kernel in which it was asked for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perflab.errors import UnknownEvent
from perflab.host.temporary_folders import temporary
from perflab.progress_bar import PROGRESS_FILE
from perflab.trials.events import Event, parse

LOOK_S = 0.2


@contextmanager
def followed(on_event: Callable[[Event], None]) -> Iterator[None]:
    """Hear of every event of the runs that kernels started in the block make.

    The kernel inherits the name of a file (``PERFLAB_PROGRESS``) and appends its events to it; a
    thread reads it and calls ``on_event``, for the last ones before the block is left.

    Raises
    ------
    UnknownEvent
        When the block is left: a run said what is no event here.
    """
    with temporary("progress") as folder:
        path = folder / "events"
        path.touch()
        ended = threading.Event()

        problems: list[UnknownEvent] = []

        def read() -> None:
            try:
                _read(path, ended, on_event)
            except UnknownEvent as error:
                problems.append(error)

        thread = threading.Thread(target=read, daemon=True)
        before = os.environ.get(PROGRESS_FILE)
        os.environ[PROGRESS_FILE] = str(path)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(timeout=5)
            if before is None:
                del os.environ[PROGRESS_FILE]
            else:
                os.environ[PROGRESS_FILE] = before
        if problems:
            raise problems[0]


def _read(path: Path, ended: threading.Event, on_event: Callable[[Event], None]) -> None:
    with path.open() as file:
        last = False
        while True:
            for line in file:
                on_event(parse(line))
            if last:
                return
            last = ended.wait(LOOK_S)
