"""What the doctor says of what it finds: every finding is planted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perflab.doctor import cores, disk, limits, neighbours, programs, remains, variables
from perflab.doctor.docker_engine import engine
from perflab.doctor.examination import examine
from perflab.doctor.finding import Finding, Machine
from perflab.stacks import compilers
from perflab.stacks.surveying import Found, Survey
from tests.cli.conftest import Tell, perflab  # noqa: F401  (a fixture)

CPU = "sys/devices/system/cpu"
CLOCK = "sys/devices/system/clocksource/clocksource0"
NET = "proc/sys/net"
HOST_ENGINE = {
    "ServerVersion": "27.1", "CgroupVersion": "2", "CgroupDriver": "systemd",
    "Plugins": {"Network": ["bridge", "host"]}, "OperatingSystem": "Debian",
}  # fmt: skip
SERVICE = Found("a1-2", "echo", "up", "process", "1", 1, "running", "/run/lock/perflab.lock")


def machine(root: Path, **files: str) -> Machine:
    """Return a machine whose kernel tells just this."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Machine(root)


def said(found: Finding, state: str, *words: str) -> None:
    assert found.state == state, found
    assert all(word in f"{found.found} {found.todo}" for word in words), found
    assert bool(found.todo) == (state != "ok")


@pytest.mark.parametrize(
    ("count", "state"), [(1, "wrong"), (2, "beware"), (4, "beware"), (6, "ok"), (16, "ok")]
)
def test_cores_that_cannot_be_kept_apart_are_told(count: int, state: str) -> None:
    said(cores.apart(range(count)), state, "core")


@pytest.mark.parametrize(
    ("check", "file", "text", "state", "word"),
    [
        (cores.hyperthreads, f"{CPU}/smt/active", "1\n", "beware", "smt/control"),
        (cores.hyperthreads, f"{CPU}/smt/active", "0\n", "ok", "off"),
        (cores.governor, f"{CPU}/cpu0/cpufreq/scaling_governor", "powersave\n", "beware",
         "--governor performance"),
        (cores.governor, f"{CPU}/cpu0/cpufreq/scaling_governor", "performance\n", "ok", ""),
        (cores.turbo, f"{CPU}/intel_pstate/no_turbo", "0\n", "beware", "echo 1 >"),
        (cores.turbo, f"{CPU}/intel_pstate/no_turbo", "1\n", "ok", "off"),
        (cores.turbo, f"{CPU}/cpufreq/boost", "1\n", "beware", "echo 0 >"),
        (cores.turbo, f"{CPU}/cpufreq/boost", "0\n", "ok", "off"),
        (cores.clock, f"{CLOCK}/current_clocksource", "hpet\n", "beware", "hpet"),
        (cores.clock, f"{CLOCK}/current_clocksource", "tsc\n", "ok", "tsc"),
        (limits.ports, f"{NET}/ipv4/ip_local_port_range", "40000\t41000\n", "beware", "1,001"),
        (limits.ports, f"{NET}/ipv4/ip_local_port_range", "32768\t60999\n", "ok", "28,232"),
        (limits.backlog, f"{NET}/core/somaxconn", "128\n", "beware", "somaxconn=4096"),
        (limits.backlog, f"{NET}/core/somaxconn", "4096\n", "ok", "4,096"),
        (limits.reuse, f"{NET}/ipv4/tcp_tw_reuse", "0\n", "beware", "tcp_tw_reuse=2"),
        (limits.reuse, f"{NET}/ipv4/tcp_tw_reuse", "2\n", "ok", "2"),
        (limits.swap, "proc/meminfo", "SwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n", "beware",
         "1,024 MB"),
        (limits.swap, "proc/meminfo", "SwapTotal: 999 kB\nSwapFree: 999 kB\n", "ok", "0 MB"),
        (limits.swap, "proc/meminfo", "MemTotal: 1 kB\nSwapTotal: 0 kB\n", "ok", "none"),
    ],
)  # fmt: skip
def test_what_the_kernel_tells_is_judged(
    check: object, file: str, text: str, state: str, word: str, tmp_path: Path
) -> None:
    assert callable(check)
    said(check(machine(tmp_path, **{file: text})), state, word)


@pytest.mark.parametrize(
    "check",
    [cores.hyperthreads, cores.governor, cores.turbo, cores.clock, limits.ports, limits.backlog,
     limits.reuse, limits.swap],
)  # fmt: skip
def test_a_kernel_that_does_not_tell_is_no_fault(check: object, tmp_path: Path) -> None:
    assert callable(check)
    said(check(Machine(tmp_path)), "ok")


@pytest.mark.parametrize(
    ("most", "state"), [(256, "wrong"), (1024, "beware"), (16_384, "ok"), (1 << 62, "ok")]
)
def test_a_low_limit_of_files_is_told(most: int, state: str) -> None:
    said(limits.files(most), state)


@pytest.mark.parametrize(("free_gb", "state"), [(0.1, "wrong"), (2, "beware"), (50, "ok")])
def test_little_room_is_told(free_gb: float, state: str) -> None:
    said(disk.room("room for runs", Path("/there"), int(free_gb * 1e9)), state, "/there")


def test_databases_in_memory_are_wrong_and_the_innermost_mount_counts(tmp_path: Path) -> None:
    mounts = "/dev/a / ext4 rw 0 0\ntmpfs /var/tmp tmpfs rw 0 0\n/dev/b /var/tmp/disk xfs rw 0 0\n"
    seen = machine(tmp_path, **{"proc/mounts": mounts})
    said(disk.database_disk(seen, Path("/var/tmp/lab")), "wrong", "tmpfs", "PERFLAB_STATE")
    said(disk.database_disk(seen, Path("/var/tmp/disk/lab")), "ok", "xfs")
    said(disk.database_disk(seen, Path("/home")), "ok", "ext4")


def stat(tmp_path: Path, busy: int, idle: int, stolen: int) -> neighbours.CoreTicks | None:
    line = f"cpu {busy} 0 0 {idle} 0 0 0 {stolen} 0 0\n"
    return neighbours.ticks(machine(tmp_path, **{"proc/stat": line}))


def test_load_beside_and_stolen_time_are_told(tmp_path: Path) -> None:
    before = stat(tmp_path, 100, 1000, 5)
    beside, stolen = neighbours.between(before, stat(tmp_path, 150, 1148, 7))
    said(beside, "beware", "25.0%")
    said(stolen, "ok", "1.0%")
    beside, stolen = neighbours.between(before, stat(tmp_path, 101, 1180, 24))
    said(beside, "ok")
    said(stolen, "beware", "9.5%")
    (unknown,) = neighbours.between(before, None)
    said(unknown, "ok")


def test_engines_are_judged_by_their_network() -> None:
    said(engine(HOST_ENGINE), "ok", "27.1", "cgroup v2 by systemd", "host network")
    said(engine({**HOST_ENGINE, "OperatingSystem": "Docker Desktop"}), "beware", "proxy")
    said(engine({**HOST_ENGINE, "Plugins": {"Network": ["bridge"]}}), "beware", "proxy")
    said(engine(None), "beware", "--backend process")


def test_an_old_python_and_packages_other_than_pinned_are_told() -> None:
    said(programs.python((3, 10, 1)), "wrong", "3.11")
    said(programs.python((3, 12, 0)), "ok")
    lock = "numpy==2.1 ; python_version < '3.12' \\\n    --hash=x\nnumpy==2.2 \\\nPy_Arrow==18\n"
    said(programs.packages(lock, {"numpy": "2.1", "py-arrow": "18"}), "ok")
    said(programs.packages(lock, {"numpy": "2.0"}), "beware", "numpy 2.0 (pinned: 2.1 or 2.2)")
    said(programs.packages("", {"numpy": "2.0"}), "ok")


def test_missing_programs_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said(programs.browser(), "beware", "apt-get install chromium")
    monkeypatch.setenv("CXX", "no-such-compiler")
    said(programs.compiler(), "beware", "no-such-compiler")
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(compilers, "WHEEL", "no_such_package")
    said(programs.compiler(), "beware", "g++")


def test_what_the_lab_left_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFLAB_LOCK", SERVICE.scope)
    up = Survey((SERVICE,), ())
    said(remains.services(up, measuring=False), "beware", "echo (a1-2, process)", "perflab down")
    said(remains.services(up, measuring=True), "ok")
    said(remains.services(Survey((), ("odd",) * 5), measuring=False), "beware", "and 2 more")
    said(remains.stacks(["/a/stacks/x"]), "beware", "/a/stacks/x", "perflab down")
    said(remains.stacks([]), "ok")
    said(remains.lock("", "is a link, made by eve"), "wrong", "eve")
    said(remains.lock("flush_map", ""), "beware", "flush_map")
    said(remains.lock("", ""), "ok")


def test_settings_that_nobody_reads_are_told() -> None:
    said(variables.settings({"PERFLAB_RUN": "x"}), "beware", "did you mean 'PERFLAB_RUNS'")
    said(variables.settings({"PERFLAB_RUNS": "x", "HOME": "y"}), "ok", "PERFLAB_RUNS=x")


def test_every_setting_that_the_lab_reads_is_known() -> None:
    """Labels of services begin alike, and are no settings."""
    labels = {"PERFLAB_PROJECT", "PERFLAB_SERVICE", "PERFLAB_TOKEN"}
    places = Path(variables.__file__).parents[1]
    text = (places / "paths.py").read_text() + (places / "progress.py").read_text()
    words = {word.strip('"`') for word in text.split() if word.strip('"`,').startswith("PERFLAB_")}
    whole = {word for word in words if word.replace("_", "").isalpha()}
    assert whole <= {*variables.KNOWN, *labels}


def test_the_command_shows_all_and_fails_only_for_what_is_wrong(
    perflab: Tell,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def planted(state: str) -> list[Finding]:
        return [Finding("cores", state, "one", "more")]  # type: ignore[arg-type]

    for state, code in (("ok", 0), ("beware", 0), ("wrong", 1)):
        monkeypatch.setattr("perflab.doctor.examination.examine", lambda s=state: planted(s))
        assert state in perflab(tmp_path, "doctor", code=code)[0]
        (shown,) = json.loads(perflab(tmp_path, "doctor", "--json", code=code)[0])
        assert shown == {"what": "cores", "state": state, "found": "one", "todo": "more"}


def test_this_machine_is_examined_whole() -> None:
    found = examine()
    names = [each.what for each in found]
    assert len(names) == len(set(names)) > 20
    assert all(each.found and bool(each.todo) == (each.state != "ok") for each in found)
