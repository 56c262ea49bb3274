"""Events of a run, followed from outside of the notebook's kernel in which it was asked for."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perflab.progress import PROGRESS_FILE, Event

LOOK_S = 0.2


@contextmanager
def followed(on_event: Callable[[Event], None]) -> Iterator[None]:
    """Hear of every event of the runs that kernels started in the block make.

    The kernel inherits the name of a file (``PERFLAB_PROGRESS``) and appends its events to it; a
    thread reads it and calls ``on_event``, for the last ones before the block is left.
    """
    with tempfile.TemporaryDirectory(prefix="perflab-progress-") as folder:
        path = Path(folder) / "events"
        path.touch()
        ended = threading.Event()

        def read() -> None:
            with path.open() as file:
                last = False
                while True:
                    for line in file:
                        on_event(json.loads(line))
                    if last:
                        return
                    last = ended.wait(LOOK_S)

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
