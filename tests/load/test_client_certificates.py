"""Client certificates: shown to a server that asks; what cannot be shown is refused before."""

from __future__ import annotations

import http.server
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perflab.errors import ParameterError
from perflab.load import once
from perflab.load.options import LoadOptions
from tests.load.processes import a_certificate

WORD = "PERFLAB_TEST_KEY_WORD"


def openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mtls")
    for name in ("server", "client", "other"):
        a_certificate(folder, name)
    key = str(folder / "client.key")
    locked = str(folder / "locked.key")
    openssl("rsa", "-aes256", "-in", key, "-out", locked, "-passout", "pass:geheim")
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / "client.pem")
    # A client that is refused hears of it in the handshake, not after it.
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    class Server(http.server.ThreadingHTTPServer):
        def get_request(self) -> Any:
            opened, where = super().get_request()
            return context.wrap_socket(opened, server_side=True), where

    class Answering(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


def given(folder: Path, **words: Any) -> dict[str, Any]:
    return {"users": 1, "requests": 4, "ca_file": str(folder / "server.pem"), **words}


def test_every_client_shows_its_certificate(
    folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WORD, "geheim")
    words = given(folder, cert=str(folder / "client.pem"), expect_status=200)
    locked = {"key": str(folder / "locked.key"), "key_password_env": WORD}
    assert once.send(url, workers=1, **words, **locked)["errors"] == 0
    plain = LoadOptions.of({"url": url, **words, "key": str(folder / "client.key")}).workload()
    for client in ("aiohttp", "httpx"):
        made = plain.model_copy(update={"client": client})
        assert once.carry_out(made, url, workers=1).shown["errors"] == 0


@pytest.mark.slow
def test_the_password_is_in_no_record(
    folder: Path, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(WORD, "geheim")
    words = given(folder, cert=str(folder / "client.pem"), key=str(folder / "locked.key"))
    once.send(url, workers=1, out=str(tmp_path / "out"), key_password_env=WORD, **words)
    record = (tmp_path / "out" / "load.json").read_text()
    assert WORD in record
    assert "geheim" not in record


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"cert": "client.pem", "key": "other.key"}, "do not fit: the key is another's"),
        ({"cert": "client.pem", "key": "locked.key"}, "is encrypted: put its password into"),
        ({"cert": "client.pem", "key": "no.key"}, "no such file"),
        ({"cert": "client.pem"}, "name the key's file with --key"),
        ({"cert": "client.key", "key": "client.key"}, "not a certificate and a key in PEM"),
        ({"key": "client.key"}, "--key needs --cert"),
        (
            {"cert": "client.pem", "key": "locked.key", "key_password_env": "PERFLAB_NOT_SET"},
            "no such environment variable is set",
        ),
        (
            {"cert": "client.pem", "key": "locked.key", "key_password_env": "PATH"},
            "is not decrypted by the password in PATH",
        ),
    ],
)
def test_files_that_cannot_be_shown_are_refused_before_the_start(
    folder: Path, words: dict[str, str], told: str
) -> None:
    placed = {
        name: str(folder / value) if name in ("cert", "key") else value
        for name, value in words.items()
    }
    with pytest.raises(ParameterError, match=told):
        LoadOptions.of(
            {"url": "https://127.0.0.1:9/", "users": 1, "requests": 1, **placed}
        ).workload()
