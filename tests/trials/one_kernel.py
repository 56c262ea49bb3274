"""papermill with one kernel for many notebooks, which imports each module once.

Between two notebooks the kernel forgets all names and its history.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from papermill.engines import NBClientEngine, papermill_engines
from traitlets.config import Config

from perflab.paths import project_root

NAME = "one kernel"
FORGET = "get_ipython().reset(new_session=True)"


@contextmanager
def one_kernel() -> Iterator[str]:
    """Start a kernel and return the name of the engine that executes notebooks in it."""
    with tempfile.TemporaryDirectory(prefix="kernel-", dir="/tmp") as folder:
        config = Config(KernelManager={"transport": "ipc", "ip": f"{folder}/socket"})
        manager = AsyncKernelManager(kernel_name="python3", config=config)
        run_sync(manager.start_kernel)(cwd=str(project_root()))
        papermill_engines.register(NAME, _engine(manager))
        try:
            yield NAME
        finally:
            run_sync(manager.shutdown_kernel)(now=True)


def _engine(manager: AsyncKernelManager) -> type[NBClientEngine]:
    class OneKernelEngine(NBClientEngine):  # type: ignore[misc]
        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> Any:
            run_sync(_forget)(manager)
            return super().execute_managed_notebook(nb_man, kernel_name, km=manager, **options)

    return OneKernelEngine


async def _forget(manager: AsyncKernelManager) -> None:
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        reply = await client.execute_interactive(FORGET, store_history=False, timeout=60)
        assert reply["content"]["status"] == "ok"
    finally:
        client.stop_channels()
