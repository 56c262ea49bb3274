"""Commands as they are typed, as in the tests of the command line."""

from __future__ import annotations

from tests.cli.conftest import perflab

__all__ = ["perflab"]
