"""The findings of the doctor, on planted facts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perflab.host import facts
from perflab.host.lock import Holder
from perflab.host.meters import CoreTimes
from perflab.recordings.switches import SWITCHES
from perflab.stacks import doctor
from perflab.stacks.doctor import Finding
from tests.cli.conftest import Tell

HOST_ENGINE = {
    "ServerVersion": "27.1", "Plugins": {"Network": ["bridge", "host"]},
    "OperatingSystem": "Debian",
}  # fmt: skip


def check_finding(finding: Finding, state: str, *words: str) -> None:
    assert finding.state == state, finding
    assert all(word in f"{finding.found} {finding.todo}" for word in words), finding
    assert bool(finding.todo) == (state != "ok")


def test_cores_that_cannot_be_kept_apart_are_told() -> None:
    for count, state in ((1, "wrong"), (2, "beware"), (4, "beware"), (6, "ok"), (16, "ok")):
        check_finding(doctor.cores(range(count)), state, "core")


@pytest.mark.parametrize(
    ("what", "value", "state", "word"),
    [
        ("SMT", "1", "beware", "smt/control"),
        ("SMT", "0", "ok", "off"),
        ("SMT", "unknown", "ok", "does not report"),
        ("governor", "powersave", "beware", "--governor performance"),
        ("governor", "userspace", "beware", "--governor performance"),
        ("governor", "performance", "ok", "performance"),
        ("governor", "unknown", "ok", "does not report"),
        ("turbo", "on", "beware", "echo 1 >"),
        ("turbo", "off", "ok", "off"),
        ("clock_source", "hpet", "beware", "current_clocksource"),
        ("clock_source", "tsc", "ok", "tsc"),
    ],
)
def test_what_the_kernel_tells_is_judged(what: str, value: str, state: str, word: str) -> None:
    known = {"SMT": doctor.SMT, **SWITCHES}[what]
    check_finding(doctor.switch(known, value), state, word)


def test_all_that_a_record_has_of_the_machine_is_judged_by_one_table() -> None:
    assert facts.switches().keys() == SWITCHES.keys() <= facts.environment().keys()


def test_little_room_is_told() -> None:
    for free_gb, state in ((0.1, "wrong"), (2, "beware"), (50, "ok")):
        check_finding(doctor.room("room for runs", Path("/there"), free_gb), state, "/there")


def test_databases_in_memory_are_wrong_and_the_innermost_mount_counts() -> None:
    mounts = "/dev/a / ext4 rw 0 0\ntmpfs /var/tmp tmpfs rw 0 0\n/dev/b /var/tmp/disk xfs rw 0 0\n"
    memory = doctor.database_disk(mounts, Path("/var/tmp/lab"))
    check_finding(memory, "wrong", "tmpfs", "PERFLAB_STATE")
    check_finding(doctor.database_disk(mounts, Path("/var/tmp/disk/lab")), "ok", "xfs")
    later = mounts + "/dev/c /var/tmp ext4 rw 0 0\n"
    check_finding(doctor.database_disk(later, Path("/var/tmp/lab")), "ok", "ext4")


def times(busy_ms: int, stolen_ms: int) -> dict[int, CoreTimes]:
    return {0: CoreTimes(busy_ms * 1_000_000, stolen_ms * 1_000_000), 1: CoreTimes(0, 0)}


def test_load_beside_and_stolen_time_are_told() -> None:
    beside, stolen = doctor.neighbours(times(100, 5), times(600, 25))
    check_finding(beside, "beware", "25.0%")
    check_finding(stolen, "ok", "1.0%")
    beside, stolen = doctor.neighbours(times(100, 5), times(110, 195))
    check_finding(beside, "ok")
    check_finding(stolen, "beware", "9.5%")


def test_engines_are_judged_by_their_network() -> None:
    check_finding(doctor.engine(HOST_ENGINE), "ok", "27.1", "host network")
    for other in ({"OperatingSystem": "Docker Desktop"}, {"Plugins": {"Network": ["bridge"]}}):
        check_finding(doctor.engine({**HOST_ENGINE, **other}), "beware", "proxy")
    check_finding(doctor.engine(None), "beware", "--backend process")


def test_who_measures_and_what_was_left_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "other_users", lambda: ["user eve measures"])
    monkeypatch.setattr(doctor.cleanup, "everything", list)
    monkeypatch.setattr(doctor.cleanup, "orphaned_folders", lambda: [Path("/a/stacks/x")])
    lock, others, services = doctor.leftover()
    check_finding(lock, "ok", "free")
    check_finding(others, "beware", "eve")
    check_finding(services, "beware", "left behind by a crash: /a/stacks/x", "perflab stack down")
    monkeypatch.setattr(doctor, "holder", lambda: Holder(1, "flush_map", "now"))
    lock, _, services = doctor.leftover()
    check_finding(lock, "beware", "flush_map")
    check_finding(services, "ok")


def test_the_command_shows_all_and_fails_only_for_what_is_wrong(
    perflab: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planted(state: str) -> list[Finding]:
        return [Finding("cores", state, "one", "more")]  # type: ignore[arg-type]

    for state, code in (("ok", 0), ("beware", 0), ("wrong", 1)):
        monkeypatch.setattr("perflab.cli.actions.doctor.examine", lambda s=state: planted(s))
        assert state in perflab(tmp_path, "doctor", code=code)[0]


PROJECT = """
[service]
command = "{command}"
prepare = "{prepare}"
[service.needs]
db = "{db}"
[service.env]
URL = "{url}"
[load]
{request}
"""
SOUND = {
    "command": ".venv/bin/serve --port {port}", "prepare": "cd . && make it", "db": "postgres",
    "url": "{db.url}", "request": 'path = "/items"',
}  # fmt: skip
# What is wrong in the project's file, and what is told of it.
BROKEN: dict[str, tuple[dict[str, str], str, str]] = {
    "program": ({"command": "no-such --x {port}"}, "there is no program 'no-such'", "line 3"),
    "shell": ({"command": "make it && env serve {port}"}, "no shell reads it, and '&&'", "line 3"),
    "file": ({"prepare": ""}, "no variant has a file .venv/bin/serve: let prepare", "line 3"),
    "prepare": ({"prepare": "A=1 no-such sync"}, "prepare: there is no program", "line 4"),
    "port": ({"command": "sleep --bind 0.0.0.0:8000"}, "it has port 8000", "line 3"),
    "version": ({"db": "postgres:9"}, "PostgreSQL 18", "line 6"),
    "placeholder": ({"url": "{bd.url}"}, "did you mean 'db.url'", "line 8"),
    "store": ({"url": "postgresql://10.1.1.1/x"}, "did not start", "names it"),
    "variable": ({"url": "{env:NOT_SET_HERE}"}, "NOT_SET_HERE is not set", "names it"),
    "unused": ({"url": "memory"}, "nothing gets the address of the store 'db'", '"{db.url}"'),
    "request": ({"request": ""}, "nothing says what users request", "[[load.requests]]"),
    "sound": ({}, "a duel of its service can begin", ""),
}
CAN_BEGIN = ("unused", "request", "sound")


@pytest.mark.parametrize("name", BROKEN)
def test_what_of_a_project_does_not_work_here_is_told_with_its_line(
    name: str, here: Path, perflab: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, told, place = BROKEN[name]
    text = PROJECT
    for key, value in {**SOUND, **changes}.items():
        text = text.replace(f"{{{key}}}", value, 1)
    (here / "perflab.toml").write_text(text)
    monkeypatch.setattr("perflab.cli.actions.doctor.examine", list)
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "x")):
        author = ("-c", "user.name=x", "-c", "user.email=x@localhost")
        subprocess.run(["git", *author, *words], cwd=here, check=True)
    output, _ = perflab(here / "runs", "doctor", code=int(name not in CAN_BEGIN), COLUMNS="400")
    assert told in output
    assert place in output
    assert output.count("\nperflab.toml ") == 1


def test_a_project_without_a_commit_is_told_so_and_all_the_rest(
    here: Path, perflab: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "perflab.toml").write_text('[service]\ncommand = "no-such {port}"\n')
    of_machine = [Finding("cores", "ok", "two")]
    monkeypatch.setattr("perflab.cli.actions.doctor.examine", lambda: of_machine)
    output, _ = perflab(here / "runs", "doctor", code=1, COLUMNS="400")
    # What concerns the project comes first.
    assert 0 < output.index("\nperflab.toml ") < output.index("\ncores ")
    assert "git init, and commit" in output
    assert "there is no program 'no-such'" in output
    (here / "perflab.toml").write_text("[service]\n# command = 'serve'\n")
    assert "git init, and commit" in perflab(here / "runs", "doctor", code=1, COLUMNS="400")[0]
    (here / "perflab.toml").write_text("[results]\n")
    assert "perflab.toml" not in perflab(here / "runs", "doctor", COLUMNS="400")[0]


def test_without_a_commit_what_else_is_wrong_in_the_file_is_told_once(
    here: Path, perflab: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "Dockerfile").write_text("FROM scratch\n")
    monkeypatch.setattr("perflab.cli.actions.doctor.examine", list)
    for service in ("", 'command = "sleep {port}"'):
        (here / "perflab.toml").write_text(f"[service]\n{service}\n[load]\nusers = -1\n")
        output, _ = perflab(here / "runs", "doctor", code=1, COLUMNS="400")
        assert output.count("users = -1: must be 1 or more") == 1
        assert "no commit to compare" in output
        assert "not a git repository" in output


def test_this_machine_is_examined_whole() -> None:
    findings = doctor.examine()
    names = [finding.what for finding in findings]
    assert len(names) == len(set(names)) > 12
    assert all(item.found and bool(item.todo) == (item.state != "ok") for item in findings)
