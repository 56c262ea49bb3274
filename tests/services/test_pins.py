"""A service runs on what is pinned beside it, in both backends, whatever the lab has."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from perflab.paths import services_dir
from perflab.stacks.process_backend import choose
from perflab.stacks.spec import load_service

IMAGE_PYTHON = {"python_version": "3.11", "python_full_version": "3.11.2"}
OWN_PYTHON = {"python_full_version": sys.version.split()[0]}
SERVICES = sorted(path.parent.name for path in services_dir().glob("*/requirements.txt"))


def pinned(text: str, python: dict[str, str]) -> dict[str, str]:
    """Return name to version for a Python on Linux."""
    pins = {}
    for line in re.findall(r"^[A-Za-z0-9].*$", text, re.MULTILINE):
        pin = Requirement(line.removesuffix("\\").partition("--hash")[0].strip())
        if pin.marker is None or pin.marker.evaluate(python):
            pins[canonicalize_name(pin.name)] = str(pin.specifier).removeprefix("==")
    return pins


def lock_of(name: str, python: dict[str, str] = OWN_PYTHON) -> dict[str, str]:
    return pinned((services_dir() / name / "requirements.txt").read_text(), python)


@pytest.mark.parametrize("name", SERVICES)
def test_a_lock_holds_all_that_was_asked_for_with_hashes_and_no_address(name: str) -> None:
    folder = services_dir() / name
    text = (folder / "requirements.txt").read_text()
    asked = (folder / "requirements.in").read_text().split()
    assert {canonicalize_name(item) for item in asked} <= set(lock_of(name))
    assert "://" not in text
    for block in re.split(r"\n(?=[A-Za-z0-9])", text.strip()):
        assert re.match(r"[A-Za-z0-9._-]+==\S+( ; .*?)? \\\n +--hash=sha256:", block), block[:80]


@pytest.mark.parametrize(
    "path", sorted(services_dir().glob("*/Dockerfile")), ids=lambda path: path.parent.name
)
def test_an_image_installs_the_lock_and_checks_its_hashes(path: Path) -> None:
    installing = [line for line in path.read_text().splitlines() if "pip install" in line]
    # PostgreSQL's is Debian's own; its lock is for the plain process.
    assert len(installing) == (path.parent.name in SERVICES and path.parent.name != "postgres")
    assert all("--require-hashes -r /srv/requirements.txt" in line for line in installing)


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_installed_is_what_is_pinned(backend_name: str, name: str) -> None:
    backend, spec = choose(backend_name), load_service(name)
    backend.prepare(spec)
    versions = backend.versions(spec)
    if backend_name == "process":
        assert versions.pop("python") == sys.version.split()[0]
        assert versions == lock_of(name)
        return
    assert versions.pop("python").startswith("3.11.")
    debian = {item for item in versions if item.startswith("debian:")}
    pins = {item: version for item, version in versions.items() if item not in debian}
    if name == "postgres":
        assert versions["debian:postgresql-15"].startswith("15.")
        return
    locked = lock_of(name, IMAGE_PYTHON)
    # The image's own virtual environment brings its installers.
    assert {item: pins.get(item) for item in locked} == locked
    assert set(pins) - set(locked) <= {"pip", "setuptools"}
