"""The installer looks for packages where pip does, and says why it failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.host import installer
from tests.support.wheels import only_from, wheel

UNKNOWN = "--hash=sha256:" + "0" * 64


def uv_variables(monkeypatch: pytest.MonkeyPatch, **settings: str) -> dict[str, str]:
    """Return uv's variables where these are pip's only settings."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "SSL_CERT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return installer.variables()


def test_the_settings_of_pip_reach_uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    variables = uv_variables(
        monkeypatch,
        UV_INDEX="https://uv.example",
        PIP_INDEX_URL="https://one.example/simple",
        PIP_EXTRA_INDEX_URL="https://two.example/simple",
        PIP_FIND_LINKS=f"{tmp_path} {tmp_path}/absent",
        PIP_TRUSTED_HOST="one.example",
        PIP_CERT="/etc/bundle.pem",
        PIP_PROXY="http://proxy.example:3128",
    )
    assert variables["UV_DEFAULT_INDEX"] == "https://one.example/simple"
    assert "UV_INDEX" not in variables, "what uv is told itself stays"
    # pip ignores a folder that does not exist.
    assert variables["UV_FIND_LINKS"] == str(tmp_path)
    assert variables["UV_INSECURE_HOST"] == "one.example"
    assert variables["SSL_CERT_FILE"] == "/etc/bundle.pem"
    assert variables["ALL_PROXY"] == "http://proxy.example:3128"


def install(tmp_path: Path, pinned: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Install into a folder by the program, with a cache of its own."""
    target, listed = tmp_path / "target", tmp_path / "pinned.txt"
    listed.write_text(pinned)
    inherited = {name: text for name, text in os.environ.items() if name[:4] not in ("PIP_", "UV_")}
    variables = {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_HTTP_RETRIES": "0"}
    words = ["--python", sys.executable, "--require-hashes", "--target", str(target)]
    return subprocess.run(
        [sys.executable, "-I", installer.__file__, "pip", "install", *words, "-r", str(listed)],
        env={**inherited, **variables, **settings}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pinned", "cause"),
    [
        (f"thing==1.0 {UNKNOWN}", "hash differs"),
        (f"thing==2.0 {UNKNOWN}", "lacks a pinned package"),
    ],
)
def test_no_other_package_is_installed_and_a_refusal_says_the_cause(
    tmp_path: Path, pinned: str, cause: str
) -> None:
    wheel(tmp_path / "wheels", "thing", "1.0")
    done = install(tmp_path, pinned, **only_from(tmp_path / "wheels"))
    assert cause in done.stderr
    assert not (tmp_path / "target" / "thing.py").exists()
