"""Whether the scheduler reaches a worker, in network namespaces in place of hosts."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import which

import pytest

from perflab.errors import ClusterError
from perflab.sweeps.hosts.dispatch import FAILURES, answering
from perflab.sweeps.hosts.worker import own_address, serve
from tests.stacks.asking import wait_until
from tests.sweeps.hosts.hosts import DASK
from tests.sweeps.swept import PERFLAB, read_until

HEAD, NODE, HIDDEN = "198.18.7.1", "198.18.7.2", "198.18.9.9"
ASKING = """
import json, sys
from perflab.sweeps.hosts.dispatch import answering, connected
with connected(sys.argv[1]) as client:
    print(json.dumps(answering(client)))
"""


@contextmanager
def joined() -> Iterator[tuple[str, str]]:
    """Make two namespaces that are joined by a link; yield their names.

    The second has another address, to which the first has no way.
    """
    head, node = (f"perflab-{name}-{os.getpid()}" for name in ("head", "node"))
    steps = [
        f"netns add {head}", f"netns add {node}",
        f"-n {head} link add one type veth peer name other netns {node}",
        f"-n {head} addr add {HEAD}/30 dev one", f"-n {node} addr add {NODE}/30 dev other",
        f"-n {node} addr add {HIDDEN}/32 dev lo",
        f"-n {head} link set one up", f"-n {node} link set other up",
        f"-n {head} link set lo up", f"-n {node} link set lo up",
    ]  # fmt: skip
    try:
        for step in steps:
            subprocess.run(["ip", *step.split()], check=True)
        yield head, node
    finally:
        for name in (head, node):
            subprocess.run(["ip", "netns", "del", name], check=False)


@contextmanager
def started(namespace: str, *words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a namespace."""
    command = ["ip", "netns", "exec", namespace, *words]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        yield child
    finally:
        child.terminate()
        child.communicate(timeout=60)


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("PERFLAB_REQUIRE_DOCKER") != "1" and bool(os.geteuid() or not which("ip")),
    reason="to make namespaces takes root and iproute2",
)
def test_a_worker_whose_address_leads_nowhere_gets_no_cell_and_is_named(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    words = ["--host", HEAD, "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    with joined() as (head, node), ExitStack() as open_until_the_end:
        failures = dict([FAILURES.split("=")])
        open_until_the_end.enter_context(started(head, DASK, "scheduler", *words, **failures))
        wait_until(lambda: file.exists() and file.read_text().endswith("}"), timeout_s=120)
        address = str(json.loads(file.read_text())["address"])
        for name, listen in (("near", []), ("hidden", ["--listen", HIDDEN])):
            state = {"PERFLAB_HOST": name, "PERFLAB_STATE": str(tmp_path / name)}
            worker = started(node, PERFLAB, "worker", address, *listen, **state)
            read_until(open_until_the_end.enter_context(worker), f"worker {name} at")
        asked = [sys.executable, "-c", ASKING, address]
        command = ["ip", "netns", "exec", head, *asked]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    ((reached,), (remark,)) = json.loads(told)
    assert reached.startswith(f"tcp://{NODE}:")
    assert remark.startswith(
        f"hidden gets no cell: the scheduler does not reach its worker at tcp://{HIDDEN}"
    )
    assert "--listen" in remark


def test_a_worker_whose_address_leads_to_another_worker_gets_no_cell() -> None:
    from distributed import Client, Scheduler, Worker

    async def asked() -> tuple[list[str], list[str]]:
        quiet = {"host": "127.0.0.1", "port": 0, "dashboard": False}
        async with (
            Scheduler(**quiet) as own,
            Scheduler(**quiet) as other,
            Worker(other.address, host="127.0.0.1", nthreads=1) as another,
            Worker(
                own.address, host="127.0.0.1", nthreads=1, name="near",
                contact_address=another.address,
            ),
        ):  # fmt: skip

            def ask() -> tuple[list[str], list[str]]:
                with Client(own.address, set_as_default=False) as client:
                    return answering(client)

            return await asyncio.to_thread(ask)

    reached, (remark,) = asyncio.run(asked())
    assert reached == []
    assert remark.startswith("near gets no cell")


def test_a_worker_announces_the_address_by_which_it_reaches_the_scheduler() -> None:
    assert own_address("tcp://127.0.0.1:8786") == own_address("127.0.0.1:8786") == "127.0.0.1"
    for wrong in ("head", "tcp://127.0.0.1", "tcp://127.0.0.1:x"):
        with pytest.raises(ClusterError, match="give an address like"):
            own_address(wrong)


def test_loopback_is_refused_for_a_scheduler_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perflab.sweeps.hosts.worker.own_address", lambda _: NODE)
    with pytest.raises(ClusterError, match=rf"leave --listen out to take {NODE}"):
        serve(f"tcp://{HEAD}:8786", "127.0.0.1")
