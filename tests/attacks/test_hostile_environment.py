"""Environments in which the lab is started: proxies, masks, streams that are closed or full."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from perflab.figures.export import FigureNotSaved, write_whole
from perflab.paths import project_root
from perflab.stacks import asking
from perflab.stacks.process_backend import ProcessBackend
from tests.attacks.second_user import Stranger
from tests.services import running

PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
PERFLAB = [sys.executable, "-c", "from perflab.cli import main; main()"]


class _Counting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append(self.path)  # type: ignore[attr-defined]
        body = json.dumps({"who": self.server.name}).encode()  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def serve(name: str) -> HTTPServer:
    server = HTTPServer(("127.0.0.1", 0), _Counting)
    server.name, server.seen = name, []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture
def service_and_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[HTTPServer, HTTPServer]]:
    service, proxy = serve("service"), serve("proxy")
    for name in PROXIES:
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    importlib.reload(asking)  # as if the lab were started in this environment
    yield service, proxy
    for server in (service, proxy):
        server.shutdown()
        server.server_close()


def test_what_the_lab_asks_its_services_goes_to_no_proxy(
    service_and_proxy: tuple[HTTPServer, HTTPServer],
) -> None:
    service, proxy = service_and_proxy
    assert asking.ask(service.server_port, "/settings") == {"who": "service"}
    assert asking.answers(service.server_port, "/health")
    assert service.seen == ["/settings", "/health"]  # type: ignore[attr-defined]
    assert proxy.seen == []  # type: ignore[attr-defined]


def test_nothing_in_the_lab_opens_addresses_in_another_way() -> None:
    users = [
        path.name
        for path in (project_root() / "perflab").rglob("*.py")
        if re.search(r"urlopen|urlretrieve|build_opener|install_opener", path.read_text())
    ]
    assert users == ["asking.py"]


@pytest.mark.slow
@pytest.mark.parametrize("umask", [0o027, 0o077])
def test_root_runs_postgresql_under_a_strict_umask(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    monkeypatch.setenv("PERFLAB_STATE", str(stranger.common / "state"))
    before = os.umask(umask)
    try:
        service = running.start("postgres")
        try:
            service.wait_healthy()
            assert service.is_healthy()
            assert service.data.stat().st_mode & 0o777 == 0o700
        finally:
            service.instance.stop()
    finally:
        os.umask(before)


def test_what_another_user_must_run_is_readable_to_all_whatever_its_source(
    places: Path,
) -> None:
    source = places / "source"
    (source / "bin").mkdir(parents=True, mode=0o700)
    for name, mode in (("program", 0o700), ("text", 0o600), ("open", 0o666)):
        (source / "bin" / name).touch()
        (source / "bin" / name).chmod(mode)
    copy = ProcessBackend()._readable_copy([source], "name") / "source" / "bin"
    modes = {path.name: path.stat().st_mode & 0o777 for path in (copy, *copy.iterdir())}
    assert modes == {"bin": 0o755, "program": 0o755, "text": 0o644, "open": 0o644}


def run(
    *words: str, stdout: str = "", without: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line from a shell that has done ``stdout`` to its standard output."""
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {stdout}', "sh", *PERFLAB, *words],
        env=kept | environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
    )


def test_with_standard_output_closed_nothing_is_begun() -> None:
    done = run("ps", stdout=">&-")
    assert done.returncode == 1
    assert done.stderr == (
        "perflab: standard output is closed, so nothing was started; "
        "send it to a file or to /dev/null\n"
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_is_a_sentence_and_a_failure(unbuffered: str) -> None:
    done = run("ps", stdout=">/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 1
    assert done.stderr == (
        "perflab: what was to be shown or recorded cannot be written: No space left on device\n"
    )


def test_a_reader_that_has_seen_enough_is_no_error_to_speak_of() -> None:
    done = run("experiments", stdout="| true")
    assert done.stderr == ""


@pytest.mark.parametrize("stream", ["<&-", "2>&-"])
def test_other_closed_streams_disturb_nothing(stream: str) -> None:
    done = run("ps", stdout=stream)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no services are up\n" in done.stdout


@pytest.mark.parametrize("missing", [("HOME",), ("PATH",), ("HOME", "PATH", "USER", "LANG")])
def test_the_command_line_needs_neither_home_nor_path(missing: tuple[str, ...]) -> None:
    done = subprocess.run(
        [*PERFLAB, "ps"],
        env={name: value for name, value in os.environ.items() if name not in missing},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


SAYS = "from perflab.cli import outputs\nwith outputs.usable(): print('\\u2013 \\u03c1 \\u221e')"
IN_UTF8 = (
    "import pathlib, sys\nfrom perflab.cli import outputs\noutputs.speak_utf8()\n"
    "with outputs.usable():\n"
    "    pathlib.Path(sys.argv[1]).write_text('\\u03c1'); print('\\u03c1')"
)
OLD_TERMINAL = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_letters_that_the_terminal_lacks_become_question_marks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SAYS],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "? ? ?\n", "")


def test_in_another_locale_files_are_utf8_and_the_terminal_gets_what_it_can(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(IN_UTF8)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "file")],
        env={name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"}
        | OLD_TERMINAL,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "?\n", "")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "\u03c1"


def test_a_folder_of_figures_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FigureNotSaved, match=r"cannot be written .*PERFLAB_FIGURES"):
        write_whole(tmp_path / "file" / "figure.svg", b"")


def test_a_full_folder_of_figures_is_a_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FigureNotSaved, match="No space left on device"):
        write_whole(tmp_path / "figures" / "table.csv", b"x\n1\n")
    assert list((tmp_path / "figures").iterdir()) == []
