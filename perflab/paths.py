"""Where things live: the checkout, recordings, figures, and the lab's own state on this machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def project_root() -> Path:
    """Return the checkout that this package belongs to (``PERFLAB_ROOT`` overrides it)."""
    override = os.environ.get("PERFLAB_ROOT")
    return Path(override).resolve() if override else Path(__file__).resolve().parent.parent


def runs_dir() -> Path:
    """Return the folder of recordings (``PERFLAB_RUNS`` overrides it)."""
    override = os.environ.get("PERFLAB_RUNS")
    return Path(override).resolve() if override else project_root() / "data" / "runs"


def figures_dir() -> Path:
    """Return the folder of exported figures (``PERFLAB_FIGURES`` overrides it)."""
    override = os.environ.get("PERFLAB_FIGURES")
    return Path(override).resolve() if override else project_root() / "figures" / "runs"


def services_dir() -> Path:
    """Return the folder of the service specimens."""
    return project_root() / "services"


def notebooks_dir() -> Path:
    """Return the folder of the notebooks."""
    return project_root() / "notebooks"


def state_dir() -> Path:
    """Return the folder for stacks, their data and logs, and cached artifacts.

    It lies under ``/var/tmp`` by default: a database's files must be on a real disk, and a server
    that refuses root must be able to reach them (``PERFLAB_STATE`` overrides it).
    """
    override = os.environ.get("PERFLAB_STATE")
    if override:
        return Path(override).resolve()
    return Path("/var/tmp") / f"perflab-{os.getuid()}"


def lock_path() -> Path:
    """Return the host's measurement lock (``PERFLAB_LOCK`` overrides it)."""
    override = os.environ.get("PERFLAB_LOCK")
    return Path(override) if override else Path(tempfile.gettempdir()) / "perflab-host.lock"
