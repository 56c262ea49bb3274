"""papermill's own engine, which tells of trials while an experiment measures.

A cell that measures takes nearly all of a notebook's time, so a bar of cells stands still for
minutes: where a bar is wanted, it gives way to the lines of the run. papermill finds this engine by
its entry point and takes it as the default; of a notebook that makes no run the bar stays. Import
papermill, not this module: papermill loads it while it is being imported itself.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from papermill.engines import NBClientEngine, papermill_engines
from traitlets import Unicode
from traitlets.config import Config

from perflab.host.files import temporary
from perflab.trials.events import Event
from perflab.trials.progress import Terminal, followed

# Of what a kernel said past its notebook, the end is kept.
MOST_WORDS = 4000
# Modules of a notebook take up to half a second to go; a busy kernel does not end by itself.
IDLE_ENDS_WITHIN_S = 2.0


class TrialsShown:
    """Shows a run on standard error, in place of papermill's bar of cells once there is one."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._terminal = Terminal(sys.stderr)

    def __call__(self, event: Event) -> None:
        """Show one event of the run."""
        bar, self._manager.pbar = self._manager.pbar, None
        if bar is not None:
            bar.close()
        self._terminal(event)


class HeardKernelManager(AsyncKernelManager):
    """Starts a kernel whose own output, past its notebook, goes into the file ``words``.

    A terminal is no place for it: a kernel that is interrupted between two cells prints a traceback
    of its event loop, though nothing is wrong.
    """

    words = Unicode(config=True)

    # Its base is typed as its own base is, whose method is no coroutine.
    async def start_kernel(self, **options: Any) -> None:  # type: ignore[override]
        """Start the kernel, which keeps the file open by itself."""
        with Path(self.words).open("ab") as words:
            await super().start_kernel(**{**options, "stdout": words, "stderr": words})

    # Again no coroutine to mypy.
    async def shutdown_kernel(  # type: ignore[override]
        self, now: bool = False, restart: bool = False
    ) -> None:
        """Let an idle kernel end by itself; end it as Jupyter does where it does not.

        Jupyter interrupts first. That can meet the event loop of a kernel that has just become
        idle, which then misses the request, and is waited for.
        """
        if not now and await self.is_alive():
            await self.request_shutdown(restart)
            until = time.monotonic() + IDLE_ENDS_WITHIN_S
            while await self.is_alive() and time.monotonic() < until:
                await asyncio.sleep(0.02)
        await super().shutdown_kernel(now=now, restart=restart)


@contextmanager
def last_words(words: Path) -> Iterator[None]:
    """Add what a kernel said by itself, such as why it cannot start, to a notebook's error."""
    try:
        yield
    except Exception as error:
        said = words.read_bytes()[-MOST_WORDS:] if words.exists() else b""
        if said.strip():
            error.add_note(f"The kernel's own last words:\n{said.decode(errors='replace')}")
        raise


class TrialsEngine(NBClientEngine):  # type: ignore[misc]
    """papermill's engine with :class:`TrialsShown` where a bar is wanted, and a private kernel.

    The kernel talks through sockets in a folder that only this user can enter: its default, plain
    TCP on loopback, can be read by others on some hosts, and warns of it in every output.
    """

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> Any:
        """Execute the notebook as papermill does."""
        # Short, and not below TMPDIR: the path of a socket has at most 107 characters.
        with temporary("kernel", Path("/tmp")) as folder, last_words(folder / "words"):
            places = {"ip": f"{folder}/socket", "connection_file": f"{folder}/connection.json"}
            options["kernel_manager_class"] = HeardKernelManager
            options["config"] = Config(
                KernelManager={"transport": "ipc", **places},
                HeardKernelManager={"words": f"{folder}/words"},
            )
            if nb_man.pbar is None:
                return super().execute_managed_notebook(nb_man, kernel_name, **options)
            with followed(TrialsShown(nb_man)):
                return super().execute_managed_notebook(nb_man, kernel_name, **options)


papermill_engines.register(None, TrialsEngine)
