"""A kernel's own output, past its notebook: not in the terminal, but in the log of a failure."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import patch

import nbformat
import papermill
import pytest

from perflab.errors import NotebookFailed
from perflab.host.temporary_folders import temporary
from perflab.sweeps import papermill_engine
from perflab.sweeps.attempt import execute
from perflab.sweeps.papermill_engine import HeardKernelManager

# What the lab's engine does, and papermill's users without a bar get.
QUIETLY = {"progress_bar": False, "kernel_name": "python3"}
TO_THE_TERMINAL = "import os, sys\nos.write(sys.__stderr__.fileno(), b'of its own')"


def notebook(folder: Path, source: str) -> str:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    nbformat.write(made, folder / "one.ipynb")
    return str(folder / "one.ipynb")


def test_a_kernel_says_nothing_past_its_notebook(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    papermill.execute_notebook(notebook(tmp_path, TO_THE_TERMINAL), None, **QUIETLY)
    out, err = capfd.readouterr()
    assert "of its own" not in out + err


def test_an_idle_kernel_ends_by_itself_and_a_busy_one_is_ended() -> None:
    def manager() -> HeardKernelManager:
        places = {"transport": "ipc", "ip": f"{folder}/socket"}
        return HeardKernelManager(words=f"{folder}/words", kernel_name="python3", **places)

    async def ended(kernel: HeardKernelManager, source: str) -> list[str]:
        """Return what a kernel that executes something is asked to do, until it has ended."""
        asked: list[str] = []
        await kernel.start_kernel()
        client = kernel.client()
        client.start_channels()
        await client.wait_for_ready(timeout=60)
        client.execute(source)
        await asyncio.sleep(0.5)
        with patch.object(kernel, "_async_interrupt_kernel", lambda: told(asked, kernel)):
            await kernel.shutdown_kernel()
        client.stop_channels()
        assert not await kernel.is_alive()
        return asked

    async def told(asked: list[str], kernel: HeardKernelManager) -> None:
        asked.append("alive" if await kernel.is_alive() else "ended")

    with temporary("kernel", Path("/tmp")) as folder:
        # On a busy machine an idle kernel takes longer; a busy one never ends by itself.
        with patch.object(papermill_engine, "IDLE_ENDS_WITHIN_S", 30.0):
            assert asyncio.run(ended(manager(), "1")) == ["ended"]
        assert asyncio.run(ended(manager(), "import time; time.sleep(60)")) == ["alive"]


def test_what_kept_a_kernel_from_starting_is_in_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    with pytest.raises(NotebookFailed, match="DeadKernelError") as caught:
        execute("client_overhead", {"from_run": "latest"})
    assert "No module named 'encodings'" in caught.value.log
