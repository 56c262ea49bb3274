"""The images install what the lock holds, so that both backends run the same versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from perflab.paths import project_root, services_dir

IMAGE_PYTHON = {"python_version": "3.11", "python_full_version": "3.11.2", "sys_platform": "linux"}
REQUIREMENTS = sorted(services_dir().glob("*/requirements.txt"))


def locked() -> dict[str, str]:
    """Return name to pinned version for the Python of the images (Debian 12)."""
    found = {}
    for line in (project_root() / "requirements.lock").read_text().splitlines():
        text = line.partition(" \\")[0].strip()
        if not text or text.startswith(("#", "--")):
            continue
        pin = Requirement(text)
        if pin.marker is None or pin.marker.evaluate(IMAGE_PYTHON):
            found[canonicalize_name(pin.name)] = str(pin.specifier)
    return found


def test_there_are_images_with_python_requirements() -> None:
    assert {path.parent.name for path in REQUIREMENTS} == {"chat", "echo", "inference", "link"}


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.parent.name)
def test_an_image_installs_exactly_the_locked_versions(path: Path) -> None:
    pins = [Requirement(line) for line in path.read_text().splitlines() if line.strip()]
    assert pins
    wanted = {canonicalize_name(pin.name): str(pin.specifier) for pin in pins}
    assert wanted == {name: locked().get(name) for name in wanted}
    assert all(version.startswith("==") for version in wanted.values())
