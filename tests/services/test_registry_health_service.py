"""The health side of the registry itself: real downloads out of its store, in its own process."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest
from health_side import RESULTS, HealthSide
from running import SECRET, Service, Start, call, environment_of

from perflab.paths import services_dir

SIZE = 300_000
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def registry(started: Start) -> Service:
    """A registry that holds one model."""
    store = started("objectstore", store="moto")
    service = started("registry", {"store": store.port, "database": store.port}, handler="threads")
    environment, address = environment_of("registry"), f"http://127.0.0.1:{store.port}"
    subprocess.run(
        [environment.python, "-m", "registry.populate", "--models", "1", "--size", str(SIZE)],
        env={
            **os.environ,
            **environment.variables(),
            "PYTHONPATH": str(services_dir() / "registry"),
            "REGISTRY_STORE_ADDRESS": address,
            "REGISTRY_DATABASE_ADDRESS": address,
            "REGISTRY_SECRET_FILE": str(service.data / "secret"),
        },
        check=True,
        capture_output=True,
    )
    return service


def test_the_service_downloads_from_itself_what_its_store_holds(registry: Service) -> None:
    before = call(registry.port, "GET", "/counts").body
    side = HealthSide(registry.port, SECRET)
    results = side.results(side.begin("arnir0/Tiny-LLM", clients=12))
    assert [each["bytes"] for each in results["requests"]] == [SIZE] * 12
    assert results["successful"] == 12
    after = call(registry.port, "GET", "/counts").body
    assert after["completed"] - before["completed"] == 12


def test_its_token_is_the_stacks_secret_and_is_told_nowhere(registry: Service) -> None:
    kept = registry.data / "secret"
    assert kept.read_text() == SECRET
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    side = HealthSide(registry.port, "x" * 32)
    assert side.ask("GET", RESULTS + "0" * 16).code == "wrong_token"
    assert SECRET not in str(call(registry.port, "GET", "/settings").body)
    assert SECRET not in registry.instance.log()


def test_what_the_registry_refuses_is_a_failed_download(registry: Service) -> None:
    side = HealthSide(registry.port, SECRET)
    results = side.results(side.begin("nobody/has-this", clients=3))
    assert results["outcomes"] == {"refused_404": 3}
