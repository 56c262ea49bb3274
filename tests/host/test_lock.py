"""One measurement per host."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.errors import HostBusy
from perflab.host.lock import holder, measurement_lock
from perflab.host.placing import placement

HOLD = """
import sys, time
from pathlib import Path
from perflab.host.lock import measurement_lock
with measurement_lock("other", path=Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_measurement_is_refused_and_told_who_holds_the_host(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with measurement_lock("first", path=path):
        with pytest.raises(HostBusy, match="first"), measurement_lock("second", path=path):
            pass
        found = holder(path)
        assert found is not None
        assert found.what == "first"
    assert holder(path) is None


def test_the_lock_is_free_after_its_holder_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    assert holder(path) is not None
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with measurement_lock("next", path=path):
        pass


@pytest.mark.parametrize("count", [2, 3, 4, 6, 8, 32])
def test_client_and_services_never_share_a_core(count: int) -> None:
    places = placement(range(count))
    assert not set(places.client) & set(places.services)
    assert not set(places.client) & set(places.database)
    used = {
        core
        for role in ("services", "database", "link", "client")
        for core in places.cores_of(role)
    }
    assert used <= set(range(count))


def test_what_two_cores_cannot_separate_is_said() -> None:
    assert "share core 0" in placement([0, 1]).shared
