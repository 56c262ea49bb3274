"""The installer looks for packages where pip does, and says why it failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.host import installer
from tests.support.wheels import only_from, wheel

NOWHERE = "http://127.0.0.1:9/simple"
UNKNOWN = "--hash=sha256:" + "0" * 64


def told(monkeypatch: pytest.MonkeyPatch, **settings: str) -> dict[str, str]:
    """Return what uv is told where these are pip's only settings."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "SSL_CERT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return installer.variables()


def test_what_pip_is_told_reaches_uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = told(
        monkeypatch,
        UV_INDEX="https://uv.example",
        PIP_INDEX_URL="https://one.example/simple",
        PIP_EXTRA_INDEX_URL="https://two.example/simple",
        PIP_FIND_LINKS=f"{tmp_path} {tmp_path}/absent",
        PIP_TRUSTED_HOST="one.example",
        PIP_CERT="/etc/bundle.pem",
        PIP_PROXY="http://proxy.example:3128",
    )
    assert found["UV_DEFAULT_INDEX"] == "https://one.example/simple"
    assert "UV_INDEX" not in found, "what uv is told itself stays"
    # pip passes over a folder that is not there.
    assert found["UV_FIND_LINKS"] == str(tmp_path)
    assert found["UV_INSECURE_HOST"] == "one.example"
    assert found["SSL_CERT_FILE"] == "/etc/bundle.pem"
    assert found["ALL_PROXY"] == "http://proxy.example:3128"


def test_a_file_of_pips_counts_and_a_variable_counts_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://file.example\nproxy = http://a b\n")
    assert (
        told(monkeypatch, PIP_CONFIG_FILE=str(file))["UV_DEFAULT_INDEX"] == "https://file.example"
    )
    both = told(monkeypatch, PIP_CONFIG_FILE=str(file), PIP_INDEX_URL="https://said.example")
    assert both["UV_DEFAULT_INDEX"] == "https://said.example"


def install(tmp_path: Path, pinned: str, **told: str) -> subprocess.CompletedProcess[str]:
    """Install into a folder by the program, with a cache of its own."""
    target, listed = tmp_path / "target", tmp_path / "pinned.txt"
    listed.write_text(pinned)
    kept = {name: text for name, text in os.environ.items() if name[:4] not in ("PIP_", "UV_")}
    own = {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_HTTP_RETRIES": "0"}
    words = ["--python", sys.executable, "--require-hashes", "--target", str(target)]
    return subprocess.run(
        [sys.executable, "-I", installer.__file__, "pip", "install", *words, "-r", str(listed)],
        env={**kept, **own, **told}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_it_installs_what_is_pinned(tmp_path: Path) -> None:
    pinned = wheel(tmp_path / "wheels", "thing", "1.0")
    done = install(tmp_path, pinned, **only_from(tmp_path / "wheels"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "target" / "thing.py").exists()


@pytest.mark.parametrize(
    ("pinned", "said"),
    [
        (f"thing==1.0 {UNKNOWN}", "hash differs"),
        (f"thing==2.0 {UNKNOWN}", "lacks a pinned package"),
        ("thing==1.0", "pinned without a hash"),
    ],
)
def test_a_list_that_cannot_be_installed_is_said_so(tmp_path: Path, pinned: str, said: str) -> None:
    wheel(tmp_path / "wheels", "thing", "1.0")
    done = install(tmp_path, pinned, **only_from(tmp_path / "wheels"))
    assert said in done.stderr
    assert not (tmp_path / "target" / "thing.py").exists()


def test_a_cache_that_cannot_be_used_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = install(tmp_path, f"thing==1.0 {UNKNOWN}", UV_CACHE_DIR=str(tmp_path / "file"))
    assert "set UV_CACHE_DIR" in done.stderr
