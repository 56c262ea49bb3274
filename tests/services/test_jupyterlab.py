"""JupyterLab as ``make notebook`` starts it: on loopback alone, and closed to who has no token."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from running import wait_until

from perflab.paths import project_root

pytestmark = pytest.mark.slow
PATIENCE_S = 90.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What a JupyterLab with settings of its own says of itself."""
    runtime = tmp_path / "runtime"
    own = {
        "JUPYTER_RUNTIME_DIR": runtime, "JUPYTER_CONFIG_DIR": tmp_path / "config",
        "JUPYTER_DATA_DIR": tmp_path / "data", "IPYTHONDIR": tmp_path / "ipython",
    }  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        made = subprocess.Popen(
            ["make", "notebook", "ARGS=--no-browser"],
            cwd=project_root(), env={**os.environ, **{k: str(v) for k, v in own.items()}},
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(lambda: bool(_told(runtime)), timeout_s=PATIENCE_S)
        yield _told(runtime)
    finally:
        family = psutil.Process(made.pid).children(recursive=True)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(made.pid, number)
            _, family = psutil.wait_procs(family, timeout=10)
        made.wait()


def _told(runtime: Path) -> dict[str, Any]:
    """Return what a server says of itself; nothing before it has written that to its end."""
    for path in runtime.glob("jpserver-*.json"):
        with suppress(json.JSONDecodeError):
            return dict(json.loads(path.read_text()))
    return {}


def test_it_listens_on_loopback_alone_and_wants_its_token(server: dict[str, Any]) -> None:
    heard = psutil.Process(server["pid"]).net_connections(kind="inet")
    assert {each.laddr.ip for each in heard if each.status == psutil.CONN_LISTEN} == {"127.0.0.1"}
    assert len(server["token"]) >= 32
    place = f"{server['url']}api/contents"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(place, timeout=PATIENCE_S)
    with urllib.request.urlopen(f"{place}?token={server['token']}", timeout=PATIENCE_S) as answer:
        names = {each["name"] for each in json.load(answer)["content"]}
    assert "notebooks" in names or "00_start.ipynb" in names
