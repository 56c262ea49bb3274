"""A host's part of a load: when it ends, what it tells, and what hosts cannot send together."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.cli.load_hosts import check
from perflab.cluster import load_part, needed
from perflab.cluster.load_hosts import on_hosts, refuse_unfit
from perflab.cluster.load_part import SENDING, STARTING, Part, PartOrder, refuse_own
from perflab.cluster.parts import HEAR_S, Host
from perflab.errors import ClusterError, LoadError, ParameterError, TargetRefused
from perflab.load.command import workload
from perflab.load.generator import Share
from perflab.load.options import Options
from perflab.load.stopping import Progress, StopLoad
from perflab.load.workload import Burst, ClosedLoop, Request, Scripted, Workload

URL = "http://198.18.0.1:8000/"
ORDER = PartOrder({}, URL, ("198.18.0.1",), Share(0, 2), 1)


class Watched:
    """A part whose clock and whose waiting asker are the test's."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.is_wanted = True
        self.part = Part(lambda: self.is_wanted, lambda: self.now_s)


def test_a_part_that_hears_nothing_ends_what_it_sends() -> None:
    watched = Watched()
    for _ in range(10):
        watched.now_s += load_part.SILENCE_S - 1
        watched.part.check()
        watched.part.hear()
    watched.now_s += load_part.SILENCE_S + 1
    with pytest.raises(LoadError, match="nothing was heard of who asked for the load for 31 s"):
        watched.part.check()
    assert HEAR_S * 3 < load_part.SILENCE_S


def test_a_part_that_nobody_waits_for_ends_at_once() -> None:
    watched = Watched()
    watched.part.check()
    watched.is_wanted = False
    with pytest.raises(LoadError, match="nobody waits for the load any more"):
        watched.part.check()


def test_a_part_whose_worker_leaves_tells_of_that() -> None:
    part = Watched().part
    part.end("its worker was asked to end")
    with pytest.raises(LoadError, match="its worker was asked to end"):
        part.check()


def test_a_stop_ends_one_load_and_not_the_next_nor_the_part() -> None:
    part = Watched().part
    part.take(ORDER)
    part.stop("an objective was missed", 1.5)
    with pytest.raises(StopLoad, match="an objective was missed") as stopped:
        part.check()
    assert stopped.value.within_s == 1.5
    part.check_wanted()
    part.take(ORDER)
    part.check()


def test_response_times_are_handed_over_once() -> None:
    part = Watched().part
    assert part.see().state == STARTING
    part.take(ORDER)
    part._note(Progress(3, 3, 0, 2, Counter({7: 3})))
    part._note(Progress(5, 5, 1, 2, Counter({7: 1, 9: 1})))
    seen = part.see()
    assert seen.state == SENDING
    assert (seen.progress.finished, seen.progress.counts) == (5, Counter({7: 4, 9: 1}))
    again = part.see().progress
    assert (again.finished, again.failed, again.counts) == (5, 1, Counter())


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/", "http://localhost:8000/"])
def test_a_host_does_not_load_itself(url: str) -> None:
    with pytest.raises(TargetRefused, match="this host itself: give an address that all hosts"):
        refuse_own(url)


def test_an_address_that_is_no_loopback_is_another_host() -> None:
    refuse_own(URL)
    refuse_own("http://nobody.invalid/")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"url": "http://127.0.0.1:9/"}, "every host would load itself; .* --allow-target"),
        ({"url": "http://[::1]:9/"}, "every host would load itself"),
        ({"script": "a.py:B"}, "--script does not go with --scheduler"),
        ({"body_file": "a"}, "--body-file does not go with --scheduler"),
        ({"ca_file": "a"}, "--ca-file does not go with --scheduler"),
        ({"cert": "a"}, "--cert does not go with --scheduler"),
    ],
)
def test_what_hosts_cannot_send_is_refused_with_the_way_out(
    options: dict[str, Any], text: str
) -> None:
    given = Options(**{"url": URL, "users": 5, **options})
    check(given)
    (told,) = given.problems
    with pytest.raises(ParameterError, match=text):
        raise ParameterError("perflab load", [told])


def test_what_hosts_can_send_is_not_refused() -> None:
    given = Options(url=URL, users=5, allow_targets=["198.18.0.1"], body="text")
    check(given)
    assert workload(given).request.body == "text"


def hosts(*workers: int) -> list[Host]:
    """Return hosts with so many workers."""
    made = [Host(f"host{number}", "", "", None) for number in range(len(workers))]
    for number, host in enumerate(made):
        host.first, host.workers = sum(workers[:number]), workers[number]
    return made


def test_each_host_must_have_a_user() -> None:
    few = Workload(request=Request(), arrivals=ClosedLoop(users=4, requests=8))
    with pytest.raises(ParameterError, match=r"4 users are too few for 3 hosts.*give at least 5"):
        refuse_unfit(few, hosts(2, 2, 2))
    refuse_unfit(few, hosts(1, 1, 1))
    refuse_unfit(Workload(request=Request(), arrivals=Burst(size=4)), hosts(2, 2, 2))


def test_scripts_and_certificates_of_this_host_are_refused_from_python_too() -> None:
    script = Scripted(script="a:B", users=10, duration_s=1)
    with pytest.raises(ParameterError, match="scripts and bodies of files are not sent"):
        refuse_unfit(Workload(request=Request(), arrivals=script), hosts(1, 1))
    with pytest.raises(ParameterError, match="files of certificates need not be on the hosts"):
        refuse_unfit(Workload(request=Request(), arrivals=Burst(size=4), ca_file="/a"), hosts(1, 1))


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needed, "find_spec", lambda _: None)
    refused = pytest.raises(ClusterError, match=r"install 'perflab\[cluster\]'")
    with refused, on_hosts("tcp://127.0.0.1:9")(0, 0.0):
        raise AssertionError("nothing may begin")


def test_a_lost_host_is_told_with_what_its_task_said() -> None:
    from perflab.cluster.parts import Parts

    future = SimpleNamespace(done=lambda: True, status="finished", result=lambda: "no room left")
    host = Host("node2", "tcp://node2:1", "token", future)
    told = Parts(None, {}).lost(host)
    assert str(told) == "node2: no room left"
    assert host.is_lost
