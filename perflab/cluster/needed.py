"""The packages that only sweeps over several hosts need."""

from __future__ import annotations

from importlib.util import find_spec

from perflab.errors import ClusterError


def check_installed() -> None:
    """Refuse where Dask distributed is not installed.

    Raises
    ------
    ClusterError
        Names the extra to install.
    """
    if find_spec("distributed") is None:
        raise ClusterError(
            "Dask distributed is not installed; run 'make setup', or install 'perflab[cluster]'"
        )
