"""Services started once for the tests that share them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import browsing, missing_programs
from link_ends import Upstream
from running import Service, Start, start

from perflab.paths import services_dir

# Sources of the services are no packages of the project: they are found as their images find them.
for name in (
    "common", "inference", "link", "postgres", "chat", "registry", "llm_upstream", "llm_proxy",
):  # fmt: skip
    sys.path.insert(0, str(services_dir() / name))


@pytest.fixture(scope="module")
def started(own_places: Path) -> Iterator[Start]:  # noqa: ARG001
    """Start services that are stopped at the module's end, dependents first."""
    services: list[Service] = []

    def begin(name: str, *arguments: object, **settings: object) -> Service:
        service = start(name, *arguments, **settings)  # type: ignore[arg-type]
        services.append(service)
        return service.wait_healthy()

    yield begin
    for service in reversed(services):
        service.instance.stop()


@pytest.fixture(scope="module")
def postgres(started: Start) -> Service:
    return started("postgres", max_connections=30)


@pytest.fixture(scope="module")
def store(started: Start) -> Service:
    """An object store with the registry's models."""
    from registering import MODELS, SIZE, settings_for
    from registry.populate import populate

    made = started("objectstore")
    assert populate(settings_for(made), MODELS, SIZE) == MODELS
    return made


@pytest.fixture(scope="module")
def link_upstream() -> Iterator[Upstream]:
    """What is behind the link."""
    made = Upstream()
    yield made
    made.close()


@pytest.fixture(scope="module")
def started_link(started: Start, link_upstream: Upstream) -> Service:
    return started("link", {"upstream": link_upstream.port})


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests; left out only where none is required or installed."""
    missing = missing_programs()
    if missing:
        reason = f"not installed: {', '.join(missing)} (apt-get install chromium chromium-driver)"
        if os.environ.get("PERFLAB_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with browsing(tmp_path_factory.mktemp("profile")) as driver:
        yield driver
