"""A real duel with many credentials writes and shows none of them, and no path in documents."""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from perflab import api
from perflab.paths import project_root
from perflab.sweeps.attempt import execute
from tests.support import typing_in

BEARER, COOKIE, WORD = "bearer-Zq81hT", "session-Kk52Lw", "word-Pw77xA"
URL_PASSWORD, QUERY, PASSED = "url-Mm34Rr", "query-Nn90Tt", "passed-Vv13Bb"
BY_VARIABLE, OF_FILE, NAMED = "variable-Xx45Jj", "file-Cc67Dd", "named-Gg28Hh"
SECRETS = (BEARER, COOKIE, WORD, URL_PASSWORD, QUERY, PASSED, BY_VARIABLE, OF_FILE, NAMED)
SERVER = """
import http.server, json, os, sys

WANTED = {wanted}
print("environment:", dict(os.environ), flush=True)
if sys.argv[2:]:
    sys.exit("no database: " + os.environ["DATABASE_URL"])

class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        given = [self.headers.get(name) for name in WANTED["headers"]]
        given += [os.environ.get(name) for name in WANTED["variables"]] + [self.path]
        good = given == WANTED["values"]
        body = json.dumps(dict(self.headers) if not good else {{"ok": 1}}).encode()
        self.send_response(200 if good else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
WANTED = {
    "headers": ["Authorization", "Cookie", "X-Api-Key", "X-Of-File", "X-Visitor"],
    "variables": ["DB_PASSWORD", "DATABASE_URL", "PASSED"],
    "values": [
        f"Bearer {BEARER}", f"id={COOKIE}", BY_VARIABLE, OF_FILE, NAMED, WORD,
        f"postgres://app:{URL_PASSWORD}@127.0.0.1:9/x", PASSED, f"/items?token={QUERY}",
    ],
}  # fmt: skip


def pieces(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, and what is packed in them."""
    content = path.read_bytes()
    yield content
    if path.suffix == ".parquet":
        yield json.dumps(pq.read_table(path).to_pylist(), default=str).encode()
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            yield from map(packed.read, packed.namelist())
    for match in re.finditer(rb"stream\r?\n|zTXt[^\0]+\0\0|iCCP[^\0]+\0\0", content):
        try:
            yield zlib.decompressobj().decompress(content[match.end() :])
        except zlib.error:
            continue


def files_with(folder: Path, *texts: str) -> list[tuple[str, str]]:
    return [
        (str(path.relative_to(folder)), text)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for piece in pieces(path)
        for text in texts
        if text.encode() in piece
    ]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a service that answers only to whoever has all credentials."""
    folder = tmp_path / "home-of-somebody" / "shop"
    folder.mkdir(parents=True)
    (folder / "app.py").write_text(SERVER.format(wanted=WANTED))
    (folder / "headers.txt").write_text(f"# for the load\nX-Of-File: {OF_FILE}\n")
    written = tmp_path / "written"
    for name in ("RUNS", "FIGURES"):
        monkeypatch.setenv(f"PERFLAB_{name}", str(written / name.lower()))
    monkeypatch.setenv("PASSED", PASSED)
    monkeypatch.setenv("MY_KEY", BY_VARIABLE)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_byte_that_a_duel_writes_or_shows_holds_a_credential(shop: Path, tmp_path: Path) -> None:
    shown: list[str] = []

    def perflab(*words: str, statuses: tuple[int, ...] = (0,)) -> str:
        done = typing_in.perflab(*words, cwd=shop)
        shown.append(done.stdout + done.stderr)
        assert done.returncode in statuses, done.stdout + done.stderr
        return done.stdout + done.stderr

    url = f"postgres://app:{URL_PASSWORD}@127.0.0.1:9/x"
    start = f"env DB_PASSWORD={WORD} DATABASE_URL={url} {sys.executable} app.py {{port}}"
    load = [
        "-H", f"Authorization: Bearer {BEARER}", f"--header=Cookie: id={COOKIE}",
        "-H", "X-Api-Key: env:MY_KEY", "-H", f"X-Visitor: {NAMED}", "--secret", "x-visitor",
        "--header-file", "headers.txt", "--env", "PASSED", "--also", "127.0.0.1:9",
        "--path", f"/items?token={QUERY}", "--blocks", "1", "--duration", "0.3", "--warmup",
        "0.1", "--users", "1", "--design", "trials", "--wait", "600", "--seed", "7",
    ]  # fmt: skip
    variants = [f"--variant=old=command:{start}", "--variant", f"new=command:{start}"]
    # A busy machine may spoil the numbers of a trial, which are not the subject here.
    told = perflab("duel", *variants, *load, statuses=(0, 4))
    assert "Authorization: {env:AUTHORIZATION}" in told.split("repeat: ")[1]
    (run,) = api.runs()
    trials = run.trials()
    assert "failed" not in set(trials["state"])
    assert (trials["errors"] == 0).all()
    # A variant that tells its log everything and dies.
    broken = perflab(
        "duel", variants[0], "--variant", f"new=command:{start} die", *load, statuses=(1,)
    )
    assert "no database: {env:" in broken
    # A wrong answer that repeats the headers of the request.
    perflab("duel", *variants, *load, "--path", f"/?token={QUERY}", statuses=(1,))
    perflab("show", run.run_id)
    perflab("runs")
    documents = tmp_path / "written" / "documents"
    perflab("export", run.run_id, "--to", str(documents), "--full", "--format", "md,html,docx,pdf")
    # Not its output: the notebook shows where it saved figures.
    execute("custom_service", {"from_run": run.run_id})
    # `load` meets no service here: every request fails.
    address, record = f"http://127.0.0.1:9/?token={QUERY}", str(tmp_path / "written" / "load")
    short = ["--users", "1", "--duration", "0.3", "--out", record]
    perflab("load", address, *load[:3], *short, statuses=(4,))

    written = tmp_path / "written"
    assert files_with(written, *SECRETS) == []
    assert [text for text in SECRETS if text in "\n".join(shown)] == []
    places = ("home-of-somebody", str(project_root()), str(Path.home()) + "/")
    for folder in (documents, *(written / "figures").iterdir()):
        found = [each for each in files_with(folder, *places) if not each[0].endswith(".ipynb")]
        assert found == []
    section = (written / "figures" / run.run_id / f"{run.run_id}.md").read_text()
    assert "cd shop" in section
    assert "git checkout" not in section
