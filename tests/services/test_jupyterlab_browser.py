"""JupyterLab as ``make notebook`` opens it, in a real browser: run, stop, go on, see figures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from lab_side import Lab, Person, jupyterlab

from perflab import api
from perflab.host.lock import holder
from perflab.stacks import cleanup
from perflab.trials.progress import NOT_THE_RESULT

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(600)]
SMALL = {
    "backend": "process", "blocks": 1, "fresh_blocks": 0, "requests": 60, "warmup_requests": 10,
    "concurrency": 5, "workers": 1, "pool_size": 4,
}  # fmt: skip
# With these there is time to press stop.
LONG = {**SMALL, "requests": 6000, "blocks": 2}
NAME = "synchronous_commit"


@pytest.fixture(scope="module")
def lab(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:  # noqa: ARG001
    with jupyterlab(tmp_path_factory.mktemp("lab")) as running:
        yield running


def places_heard(pid: int) -> set[str]:
    """The addresses at which a process listens, from ten readings.

    One reading of the kernel's table can miss a socket while others come and go.
    """
    places = set()
    for _ in range(10):
        heard = psutil.Process(pid).net_connections(kind="inet")
        places |= {each.laddr.ip for each in heard if each.status == psutil.CONN_LISTEN}
        time.sleep(0.1)
    return places


def test_it_listens_on_loopback_alone_and_wants_its_token(browser: Any, lab: Lab) -> None:
    assert places_heard(lab.pid) == {"127.0.0.1"}
    assert len(lab.token) >= 32
    browser.get(f"{lab.url}lab")
    assert "login" in browser.current_url


def test_a_notebook_is_stopped_in_order_and_then_runs_to_its_figures(
    browser: Any, lab: Lab
) -> None:
    lab.give(NAME, LONG)
    person = Person(browser, lab, NAME)
    person.run_all()
    person.wait(lambda: "live: " in person.shown())
    assert NOT_THE_RESULT in person.shown()
    person.stop()
    person.wait_done()
    run = api.runs()[-1]
    assert run.record.state == "interrupted"
    shown = person.shown()
    assert f"resume='{run.run_id}'" in shown
    assert NOT_THE_RESULT not in shown
    assert (cleanup.everything(), holder()) == ([], None)
    person.leave()

    lab.give(NAME, SMALL)
    person = Person(browser, lab, NAME)
    person.run_all()
    person.wait_done()
    outputs = person.save()
    assert not [each for each in outputs if each.output_type == "error"]
    assert sum("image/png" in each.get("data", {}) for each in outputs) >= 3
    assert person.seen(".jp-OutputArea-output img") >= 3
    assert NOT_THE_RESULT not in str(outputs)
    assert api.runs()[-1].record.state == "finished"
    assert api.open_run(run.run_id).record.state == "interrupted"
    person.leave()
