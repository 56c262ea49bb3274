"""Puts into the wheel what a checkout holds beside the package; ``pyproject.toml`` has the rest."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# What commands read of the checkout, and perflab.paths finds in an installed package.
PARTS = ("services", "notebooks", "data/published", "data/reference", "scripts/base-image.sh")
CACHES = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.egg-info")


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


setup(cmdclass={"build_py": WithCheckout})
