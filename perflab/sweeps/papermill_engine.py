"""An engine for papermill that shows the trials while an experiment measures.

A cell that measures takes nearly all of a notebook's time, so papermill's bar of cells stands still
for minutes. Where a bar is wanted, the lines of the run replace it; in a notebook without a run the
bar stays. papermill finds this engine by its entry point and takes it as the default. Import
papermill, not this module: papermill loads it while it is imported itself.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from papermill.engines import NBClientEngine, papermill_engines
from traitlets import Unicode
from traitlets.config import Config

from perflab.host.temporary_folders import temporary
from perflab.trials.progress import PROGRESS_FILE, Event, RunBegun, Terminal, followed

# So many bytes are kept of the end of a kernel's own output.
MOST_OUTPUT_BYTES = 4000
# An idle kernel takes up to half a second to end; a busy one does not end by itself.
IDLE_ENDS_WITHIN_S = 2.0
# Source: prctl(2). None where the system has no such call.
PR_SET_PDEATHSIG = 1
_prctl = getattr(ctypes.CDLL(None), "prctl", None)


def trials_shown(manager: Any) -> Callable[[Event], None]:
    """Return what shows a run on standard error, where papermill has a bar, and notes its id.

    The first event removes the bar. The id goes into the metadata of the notebook, which is written
    whatever becomes of the run.
    """
    terminal = None if manager.pbar is None else Terminal(sys.stderr)

    def show(event: Event) -> None:
        bar, manager.pbar = manager.pbar, None
        if bar is not None:
            bar.close()
        if isinstance(event, RunBegun):
            manager.nb.metadata["perflab"] = {"run": event.run_id}
        if terminal is not None:
            terminal(event)

    return show


class HeardKernelManager(AsyncKernelManager):
    """Starts a kernel whose own output, outside its notebook, goes into the file ``words``.

    The output would confuse on a terminal: a kernel that is interrupted between two cells prints a
    traceback of its event loop, though nothing is wrong.
    """

    words = Unicode(config=True)

    # The stubs type the method of the base class as no coroutine.
    async def start_kernel(self, **options: Any) -> None:  # type: ignore[override]
        """Start the kernel, which keeps the file open, and ends with the thread that starts it.

        A kernel looks for its parent itself, but not for one that ended while the kernel began:
        where orphans have another parent than process 1, as in a desktop's session, it stays.
        """
        parent = os.getpid()

        def end_with_parent() -> None:
            if _prctl is not None:
                _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)

        with Path(self.words).open("ab") as words:
            places = {"stdout": words, "stderr": words, "preexec_fn": end_with_parent}
            await super().start_kernel(**{**options, **places})

    # The stubs again type no coroutine.
    async def shutdown_kernel(  # type: ignore[override]
        self, now: bool = False, restart: bool = False
    ) -> None:
        """Ask the kernel to end; where it does not soon, end it as Jupyter does.

        Jupyter interrupts a kernel first. An interrupt in the event loop of a kernel that has just
        become idle makes it miss the request, and Jupyter then waits for it.
        """
        if not now and await self.is_alive():
            await self.request_shutdown(restart)
            until = time.monotonic() + IDLE_ENDS_WITHIN_S
            while await self.is_alive() and time.monotonic() < until:
                await asyncio.sleep(0.02)
        await super().shutdown_kernel(now=now, restart=restart)


@contextmanager
def last_words(manager: Any, words: Path) -> Iterator[None]:
    """Add to a notebook's error how its run goes on, and its kernel's own output, if it has any."""
    try:
        yield
    except BaseException as error:
        if run := manager.nb.metadata.get("perflab", {}).get("run"):
            error.add_note(f"the run goes on with -p resume {run}; -p from_run {run} shows it")
        output = words.read_bytes()[-MOST_OUTPUT_BYTES:] if words.exists() else b""
        if output.strip():
            error.add_note(f"The kernel's own last words:\n{output.decode(errors='replace')}")
        raise


class TrialsEngine(NBClientEngine):  # type: ignore[misc]
    """papermill's engine with :func:`trials_shown` where a bar is wanted, and a private kernel.

    The kernel talks through sockets in a folder that only this user can enter. Its default is plain
    TCP on loopback, which other users can read on some hosts; Jupyter warns of it in every output.
    """

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> Any:
        """Execute the notebook as papermill does."""
        # Not below TMPDIR: the path of a socket has at most 107 characters.
        with temporary("kernel", Path("/tmp")) as folder, last_words(nb_man, folder / "words"):
            places = {"ip": f"{folder}/socket", "connection_file": f"{folder}/connection.json"}
            options["kernel_manager_class"] = HeardKernelManager
            options["config"] = Config(
                KernelManager={"transport": "ipc", **places},
                HeardKernelManager={"words": f"{folder}/words"},
            )
            if nb_man.pbar is None and PROGRESS_FILE in os.environ:  # a sweep follows
                return super().execute_managed_notebook(nb_man, kernel_name, **options)
            with followed(trials_shown(nb_man)):
                return super().execute_managed_notebook(nb_man, kernel_name, **options)


papermill_engines.register(None, TrialsEngine)
