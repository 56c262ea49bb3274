"""Real services in both backends."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from perflab.errors import ServiceFailed, StackError
from perflab.paths import project_root, state_dir
from perflab.stacks import cleanup
from perflab.stacks.spec import load_service
from perflab.systems.inference.stacks import InferenceParameters, stack
from tests.stacks.asking import children_running, infer, pids_of, started, wait_until
from tests.support.children import child

SMALL = InferenceParameters(workers=1, pool_size=4)


def test_wrong_settings_are_all_named() -> None:
    with pytest.raises(StackError, match=r"did you mean 'workers'.*runtime = 'onxn' must be one"):
        load_service("inference").with_defaults({"worker": 1, "runtime": "onxn"})


@pytest.mark.slow
def test_a_dead_service_is_named_with_its_log(backend_name: str) -> None:
    with started(backend_name, {"on": stack(SMALL, pool_size=50, workers=1)}) as residents:
        residents.activate("on")
        instance = residents.instance("on", "postgres")
        assert residents.lost("on") == {}
        (checkpointer,) = [
            pid
            for pid in pids_of(instance)
            if "checkpointer" in " ".join(psutil.Process(pid).cmdline())
        ]
        os.kill(checkpointer, signal.SIGKILL)
        wait_until(lambda: residents.lost("on"))
        assert f"process {checkpointer} (postgres: checkpointer" in residents.lost("on")["postgres"]
        assert set(residents.lost("on")) == {"postgres"}
        with pytest.raises(ServiceFailed, match=f"'postgres': lost process {checkpointer}"):
            residents.activate("on")
        child = getattr(instance, "_child", None)
        (child or instance._container).kill()  # type: ignore[attr-defined]
        wait_until(instance.exit_reason)
        with pytest.raises(ServiceFailed, match=r"'postgres': .*was ended by SIGKILL"):
            residents.check_alive("on")
        port = residents.instance("on", "inference").launch.port
        answer = infer(port)
        assert answer.status == 503
        assert "database" in str(answer.body["detail"])


OWNER = """
import os, sys, time
from perflab.systems.inference.stacks import InferenceParameters, stack
from perflab.host.placing import placement
from perflab.stacks.process_backend import choose
from perflab.stacks.reaper import Reapers
from perflab.stacks.residents import Residents
stack_name = "orphan-" + sys.argv[1]
reapers = Reapers(stack_name)
plan = stack(InferenceParameters(workers=1, pool_size=4), pool_size=50, workers=1)
residents = Residents(choose(sys.argv[1]), {"it": plan}, placement(), stack_name)
residents.prepare()
residents.start()
print("up", flush=True)
time.sleep(120)
"""


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.parametrize("backend_name", ["docker"], indirect=True, scope="module")
def test_after_sigkill_the_reaper_removes_everything(backend_name: str) -> None:
    with child(OWNER, backend_name, cwd=project_root(), start_new_session=True) as owner:
        assert len(cleanup.everything()) == 3
        # One reaper is killed with its owner: the other is enough.
        for reaper in children_running("perflab.stacks.reaper", owner.pid)[:1]:
            reaper.kill()
    folder = state_dir() / "stacks" / f"orphan-{backend_name}"
    wait_until(lambda: cleanup.everything() == [] and not folder.exists())
