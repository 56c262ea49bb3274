"""The requests of a load that has several: what users do, by name and weight."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from perflab.load.body_files import content_of
from perflab.load.workload.mix import PLACEHOLDER, Name
from perflab.load.workload.request import Statuses
from perflab.parameters import FrozenModel


class NamedRequest(FrozenModel):
    """One of the requests; ``weight`` is how often it is sent, against the sum of all weights."""

    name: Name
    weight: float = Field(default=1.0, gt=0, le=1e6)
    method: str = ""
    path: str
    headers: Mapping[str, str] = Field(default_factory=dict)
    body: str = ""
    expect_status: Statuses = 200
    expect_body: str = ""

    def words(self, headers: Mapping[str, str], folder: str) -> dict[str, Any]:
        """Return the request of a mix as data, with the headers of all requests.

        Files of ``{line:FILE}`` begin at the folder.
        """
        every = {**headers, **self.headers}
        own = {name: _with_files(text, folder) for name, text in every.items()}
        return {
            "name": self.name,
            "weight": self.weight,
            "request": {
                "method": (self.method or ("POST" if self.body else "GET")).upper(),
                "path": _with_files(self.path, folder),
                "headers": own,
                "body": content_of(_with_files(self.body, folder)),
                "expect_status": self.expect_status,
                "expect_body": self.expect_body,
            },
        }


def _with_files(text: str, folder: str) -> str:
    """Return a text whose ``{line:FILE}`` have whole paths."""
    return PLACEHOLDER.sub(
        lambda match: f"{{line:{Path(folder, match[4])}}}" if match[4] else match[0], text
    )
