"""Run uv, the installer of environments, with pip's settings.

As a program (``python perflab/host/installer.py pip sync ...``) it runs uv with these words and
explains a failure. It imports nothing else of the lab, so that it can install the lab.
"""

from __future__ import annotations

import ast
import os
import ssl
import subprocess
import sys
from pathlib import Path

# pip's settings, uv's variable for each, and what separates several values in it. Sources: pip
# documentation, Configuration; uv documentation, Environment variables.
UV_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
}
# pip takes the value of the last section that has one.
SECTIONS = ("global", "install", ":env:")
NO_INDEX = "the package index cannot be reached; check network and proxy"
# Text that uv prints, and what it means for the user; the first text that occurs counts.
WAYS_OUT = {
    "No space left": "the disk is full; free some space and try again",
    "Failed to initialize cache": "uv cannot use its cache; set UV_CACHE_DIR to another folder",
    "Hash mismatch": "a package is not the pinned one (its hash differs); check the index "
    "that it came from",
    "error sending request": NO_INDEX,
    "Failed to fetch": NO_INDEX,
    "No solution found": "the package index lacks a pinned package; run 'make lock', or set an "
    "index that has it",
    "Failed to build": "a pinned package has no wheel for this machine and cannot be built here",
}


def uv() -> str:
    """Return the path of uv, which is among the lab's own packages."""
    from uv import find_uv_bin

    return os.fspath(find_uv_bin())


def variables() -> dict[str, str]:
    """Return the variables that make uv look for packages where pip does.

    uv does not read pip's settings; variables of uv that are set stay. Hashes are pinned, so any
    index may serve a package, as with pip.
    """
    settings = _pip_settings()
    # pip ignores folders that do not exist; uv fails.
    links = settings.get("find-links", "").split()
    settings["find-links"] = " ".join(
        link for link in links if "://" in link or Path(link).exists()
    )
    chosen = {
        name: separator.join(settings[setting].split())
        for setting, (name, separator) in UV_VARIABLES.items()
        if settings.get(setting)
    }
    chosen["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if _system_has_certificates():
        chosen["UV_SYSTEM_CERTS"] = "true"
    return {name: value for name, value in chosen.items() if name not in os.environ}


def _pip_settings() -> dict[str, str]:
    """Return the settings in pip's files and variables, as pip itself reads them."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    sections: dict[str, dict[str, str]] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        sections.setdefault(section, {})[name] = str(ast.literal_eval(value))
    return {
        name: value for section in SECTIONS for name, value in sections.get(section, {}).items()
    }


def _system_has_certificates() -> bool:
    places = ssl.get_default_verify_paths()
    return bool(places.cafile or (places.capath and any(Path(places.capath).iterdir())))


def way_out(output: str) -> str:
    """Return why uv failed and what to do, by uv's output."""
    return next((text for words, text in WAYS_OUT.items() if words in output), "uv failed")


def main() -> None:
    """Run uv with the words of the command line; pass on its output and explain its failure."""
    done = subprocess.run(
        [uv(), *sys.argv[1:]], env={**os.environ, **variables()}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )  # fmt: skip
    sys.stdout.write(done.stdout)
    if done.returncode:
        sys.exit(way_out(done.stdout))


if __name__ == "__main__":
    main()
