"""Puts into the wheel what a checkout holds beside the package; ``pyproject.toml`` has the rest."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# What commands read of the checkout, and perflab.paths finds in an installed package.
PARTS = ("services", "notebooks", "data/published", "data/reference", "scripts/base-image.sh")
CACHES = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.egg-info")
# Of the package's own commit: git would tell that of the repository in which it is installed.
COMMIT = "COMMIT"


class WithCheckout(build_py):
    """Copies the package, and the parts of the checkout beside it."""

    def run(self) -> None:
        """Build; an editable installation stands in its checkout and needs no copy."""
        super().run()
        if self.editable_mode:
            return
        for part in map(Path, PARTS):
            target = Path(self.build_lib, "perflab", "checkout", part)
            target.parent.mkdir(parents=True, exist_ok=True)
            if part.is_dir():
                shutil.copytree(part, target, ignore=CACHES, dirs_exist_ok=True)
            else:
                shutil.copy(part, target)
        Path(self.build_lib, "perflab", "checkout", COMMIT).write_text(commit())


def commit() -> str:
    """Return the commit, and ``dirty`` where it was changed; nothing outside of a repository."""
    told = [
        subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()
        for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "perflab", "services"])
    ]
    return f"{told[0]} {'dirty' if told[1] else ''}".strip()


setup(cmdclass={"build_py": WithCheckout})
