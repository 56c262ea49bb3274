"""``perflab load`` as its users type it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
import typer

import perflab
from perflab.cli.load import Live, command
from perflab.errors import LoadError
from perflab.load.flags import FLAGS
from perflab.load.options import LoadOptions
from perflab.load.records.columns import frame
from perflab.load.workers.generator import Progress
from perflab.paths import project_root
from tests.cli.conftest import Tell
from tests.load.processes import served


@pytest.fixture
def server() -> Iterator[str]:
    with served("0.002") as port:
        yield f"http://127.0.0.1:{port}/"


def load(*words: str, code: int | None = 0, cwd: Path | None = None) -> tuple[str, str]:
    """Run a load; without ``code`` the numbers may be invalid, because the machine may be busy."""
    done = subprocess.run(
        [sys.executable, "-c", "from perflab.cli import main; main()", "load", *words],
        cwd=cwd or project_root(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode in ((0, 3) if code is None else (code,)), done.stdout + done.stderr
    return done.stdout, done.stderr


def test_the_recording_holds_every_request(server: str, tmp_path: Path) -> None:
    before = set(project_root().iterdir())
    words = ("--users", "5", "-n", "300", "--out", "new/result", "--workers", "2")
    out, _ = load(server, *words, code=None, cwd=tmp_path)
    folder = tmp_path / "new" / "result"
    assert set(project_root().iterdir()) == before
    assert "300 requests" in out
    table = pd.read_parquet(folder / "requests.parquet")
    assert len(table) == 300
    assert set(table["worker"]) == {0, 1}
    assert (table["phase_app_ms"] == 2).all()
    record = json.loads((folder / "load.json").read_text())
    assert record["workload"]["arrivals"]["users"] == 5
    assert sorted(path.name for path in folder.iterdir()) == ["load.json", "requests.parquet"]
    _, error = load(server, "--users", "5", "-n", "9", "--out", str(folder), code=2)
    assert "nothing is overwritten" in error


@pytest.mark.promise
def test_a_credential_of_the_address_is_not_in_the_recording(server: str, tmp_path: Path) -> None:
    address = f"{server}?token=hunter2-Qq71"
    perflab.send_load(address, users=1, requests=5, out=str(tmp_path / "out"))
    record = (tmp_path / "out" / "load.json").read_text()
    assert "hunter2" not in record
    assert json.loads(record)["url"].startswith(f"{server}?token={{env:TOKEN")


def test_the_command_has_every_option_of_a_load() -> None:
    options = {name.removesuffix("_s") for name in LoadOptions.model_fields} - {"url"}
    assert options == set(FLAGS)
    alone = typer.Typer(add_completion=False)
    alone.command()(command)
    shown = {item.name: item for item in typer.main.get_command(alone).params}
    for name, flag in FLAGS.items():
        assert str(getattr(shown[name], "help", "")).startswith(flag.text), name
        assert shown[name].default is None or isinstance(shown[name].default, bool | list), name


@pytest.mark.parametrize("flag", ["--expect-status", "--arrivals", "--connection"])
def test_a_value_that_came_out_empty_is_refused(perflab: Tell, tmp_path: Path, flag: str) -> None:
    """As of a variable that is not set."""
    words = ("load", "http://127.0.0.1:9/", "--users", "1", flag, "")
    assert flag in perflab(tmp_path, *words, code=2)[1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("http://127.0.0.1:9/ --users 3 --rate 5 --pacing 1 --end-marker z --burst 2 -d 9",
         ("give one of", "--end-marker needs", "--duration does not go", "nothing was")),
        ("http://127.0.0.1:9/ --users 3 --header x --objective y --timeout -1",
         ("--header entry 1: must be like 'Name: value'",
          "--objective: 'y' is not like 'p99<1000ms'", "--timeout -1.0: must be above 0")),
        ("http://example.org/ --users 3", ("--allow-target example.org",)),
        ("http://127.0.0.1:9/ --users 3 --find-capacity --stop-after-failures 5",
         ("--stop-after-failures does not go with --find-capacity",)),
    ],
)  # fmt: skip
def test_every_problem_is_told_at_once_before_anything_is_sent(
    perflab: Tell, tmp_path: Path, words: str, told: tuple[str, ...]
) -> None:
    _, error = perflab(tmp_path, "load", *words.split(), code=2, COLUMNS="200")
    assert all(text in error for text in told), error


def test_a_record_that_cannot_be_written_is_kept_as_it_is(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("perflab.load.records.record.write", full)
    shown = perflab.send_load(server, users=2, requests=50, out=str(tmp_path / "out"))
    assert shown.requests == 50
    assert "No space left on device" in shown.unwritten
    assert str(tmp_path / "out" / "raw") in shown.unwritten
    assert len(frame(tmp_path / "out" / "raw" / "0", 0)) == 50


def test_what_was_recorded_outlives_a_failure_to_sum_it_up(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr("perflab.load.report.summary", broken)
    with pytest.raises(
        LoadError, match="ValueError: broken; the requests so far are kept in"
    ) as told:
        perflab.send_load(server, users=2, requests=50)
    raw = Path(str(told.value).partition("kept in ")[2].partition(": a folder")[0])
    assert len(frame(raw / "0", 0)) == 50
    shutil.rmtree(raw.parent)


def test_an_interrupt_of_a_cell_ends_its_load_in_order(server: str) -> None:
    handler = signal.getsignal(signal.SIGINT)

    def interrupt() -> None:
        while signal.getsignal(signal.SIGINT) is handler:
            time.sleep(0.05)
        time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    shown = perflab.send_load(server, users=2, duration=30)
    assert shown.stopped == "interrupted"
    assert 0 < shown.duration_s < 10


def test_ctrl_c_ends_the_load_in_order(server: str, tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "from perflab.cli import main; main()", "load", server,
         "--rate", "100", "-d", "60", "--json", "--out", str(tmp_path / "out")],
        cwd=project_root(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    while not sum(file.stat().st_size for file in tmp_path.rglob("requests.rows")):
        assert child.poll() is None
        time.sleep(0.1)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    shown = json.loads(out)
    assert child.returncode == 130
    assert shown["stopped"] == "interrupted"
    assert 30 < shown["requests"] < 2000


@contextmanager
def silent() -> Iterator[str]:
    """Run a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


STUCK = """
import asyncio
from perflab.load.users import User, action

class Stuck(User):
    @action
    async def sit(self):
        await asyncio.Event().wait()
"""


def interrupted_after_s(
    folder: Path, words: tuple[str, ...], numbers: tuple[signal.Signals, ...], before: str = ""
) -> float:
    """Return how long a load of a silent server goes on after the first of some signals."""
    with silent() as url:
        child = subprocess.Popen(
            [sys.executable, "-c", f"{before}from perflab.cli import main; main()", "load", url,
             *words, "--timeout", "40"],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(folder)},
        )  # fmt: skip
        while not list(folder.rglob("requests.rows")):
            assert child.poll() is None
            time.sleep(0.1)
        began_s = time.monotonic()
        for number in numbers:
            time.sleep(1)
            child.send_signal(number)
        assert child.wait(timeout=100) == 130
    return time.monotonic() - began_s - 1


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (("--users", "2", "-d", "40"), signal.SIGINT),
        (("--rate", "10", "-d", "40"), signal.SIGTERM),
        (("--users", "2", "--objective", "p99<1s", "--find-capacity"), signal.SIGINT),
        (("--users", "2", "-d", "40", "--script", "stuck.py:Stuck"), signal.SIGINT),
        (("--users", "2", "-d", "40"), signal.SIGHUP),
    ],
)
def test_an_interrupt_waits_for_no_server_that_is_silent(
    tmp_path: Path, words: tuple[str, ...], number: signal.Signals
) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    # As where no nohup stands before it.
    heard = f"import signal; signal.signal({number:d}, signal.SIG_DFL); "
    # A check and the load are ended, each within a second, and a busy machine is slow.
    assert interrupted_after_s(tmp_path, words, (number,), heard * (number == signal.SIGHUP)) < 15


def test_a_second_interrupt_gives_up_at_once(tmp_path: Path) -> None:
    patient = "from perflab.load import once; once.GIVE_UP_S = 50.0; "
    words, twice = ("--users", "2", "-n", "9"), (signal.SIGINT, signal.SIGTERM)
    assert interrupted_after_s(tmp_path, words, twice, patient) < 15


def test_the_live_line_counts_no_wait_for_another_measurement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    instants = iter([500.0, 511.5])
    show = Live()
    monkeypatch.setattr("perflab.cli.load.time.monotonic", lambda: next(instants))
    show(Progress())
    show(Progress(finished=23))
    assert capsys.readouterr().err == "  11.5 s  23 done, 2/s, 0 failed, 0 in flight\n"
