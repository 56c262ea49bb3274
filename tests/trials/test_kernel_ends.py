"""A notebook's kernel that is stopped while it measures leaves nothing behind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from perflab import api
from perflab.host.lock import holder
from perflab.paths import project_root
from perflab.stacks import cleanup

pytestmark = pytest.mark.slow
PATIENCE_S = 90.0
RUN = """
from perflab.trials.progress import showing
from perflab.trials.client import conduct
from tests.trials.test_runs import echo_order
with showing() as show:
    conduct(echo_order(duration_s=60), show)
"""


@pytest.fixture
def kernel() -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(project_root()))
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=PATIENCE_S)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def reply_to(client: BlockingKernelClient, request: str) -> dict[str, Any]:
    """Return the reply to one request, and ignore replies to earlier ones."""
    while True:
        message = client.get_shell_msg(timeout=PATIENCE_S)
        if message["parent_header"].get("msg_id") == request:
            content: dict[str, Any] = message["content"]
            return content


def wait_measuring(client: BlockingKernelClient) -> None:
    """Wait until the cell shows live numbers of the load."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        message = client.get_iopub_msg(timeout=PATIENCE_S)
        if "live: " in str(message["content"].get("data", {}).get("text/plain", "")):
            return
    raise AssertionError("nothing live was shown")


def wait_clean() -> None:
    deadline = time.monotonic() + PATIENCE_S
    while cleanup.everything() or holder() is not None:
        assert time.monotonic() < deadline, cleanup.everything()
        time.sleep(0.2)


def test_the_stop_button_ends_the_trial_in_order_and_says_how_to_go_on(
    kernel: tuple[KernelManager, BlockingKernelClient],
) -> None:
    manager, client = kernel
    request = client.execute(RUN)
    wait_measuring(client)
    manager.interrupt_kernel()
    reply = reply_to(client, request)
    run = api.runs()[-1]
    assert reply["ename"] == "RunInterrupted"
    assert f"resume='{run.run_id}'" in reply["evalue"]
    assert reply["traceback"] == [f"RunInterrupted: {reply['evalue']}"]
    assert run.record.state == "interrupted"
    wait_clean()
