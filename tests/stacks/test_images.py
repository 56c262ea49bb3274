"""Images: what cannot be built is refused with the way out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import ImageNotFound

from perflab.errors import ImageError
from perflab.stacks.images import ensure
from perflab.stacks.spec import Health, ServiceSpec


def test_a_service_without_a_dockerfile_is_refused_with_the_way_out(tmp_path: Path) -> None:
    def missing(_tag: str) -> None:
        raise ImageNotFound("none")

    client: Any = SimpleNamespace(images=SimpleNamespace(get=missing))
    spec = ServiceSpec(
        name="tally", summary="", command=("tally",), health=Health(http="/"), folder=tmp_path
    )
    with pytest.raises(ImageError, match=r"'tally' has no Dockerfile.*backend 'process'"):
        ensure(client, spec, lambda _: None)
