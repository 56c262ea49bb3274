"""What many tests need: a state, recordings and lock of their own, and a backend to run on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from perflab.errors import BackendUnavailable
from perflab.stacks import cleanup
from tests.support.spreading import spread

# What measures, or holds a clock against something, is marked `alone`: it must not share the cores.
# `make test` runs the rest on all of them; each process that runs tests has places of its own.
# Where tests decide about a commit, the same commit meets the same examples; others meet new ones.
# A machine that is busy with other tests may take long for an example: none has a deadline.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
IN_CI = "CI" in os.environ or os.environ.get("PERFLAB_REQUIRE_DOCKER") == "1"
settings.load_profile(os.environ.setdefault("HYPOTHESIS_PROFILE", "ci" if IN_CI else "default"))
# Where it finds itself in CI, pytest shows the whole difference of two values; that of two long
# bodies takes it longer than any limit.
for name in ("CI", "BUILD_NUMBER"):
    os.environ.pop(name, None)
COLLECTED = pytest.StashKey[list[pytest.Item]]()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    """Keep what was collected before ``-m`` leaves tests out, and order those that are left."""
    config.stash[COLLECTED] = [*items]
    result = yield
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if processes > 1:
        items[:] = spread(items, processes)
    return result


@pytest.fixture(scope="session")
def collected(pytestconfig: pytest.Config) -> list[pytest.Item]:
    """All tests of the files of this session, also those that it leaves out."""
    return pytestconfig.stash[COLLECTED]


@pytest.fixture(scope="session", autouse=True)
def own_places() -> Iterator[Path]:
    """Keep every test away from the user's runs, services and host lock.

    Environments of services and compiled services are kept for the next tests: making them takes
    longer than most tests.
    """
    with tempfile.TemporaryDirectory(prefix="perflab-test-", dir="/var/tmp") as folder:
        root = Path(folder)
        root.chmod(0o755)
        places = {
            "PERFLAB_STATE": root / "state",
            "PERFLAB_RUNS": root / "runs",
            "PERFLAB_REFERENCE": root / "reference",
            "PERFLAB_FIGURES": root / "figures",
            "PERFLAB_SWEEPS": root / "sweeps",
            "PERFLAB_LOCK": root / "host.lock",
        }
        os.environ.update({name: str(path) for name, path in places.items()})
        kept = f"/var/tmp/perflab-test-environments-{os.getuid()}"
        os.environ.setdefault("PERFLAB_ENVIRONMENTS", kept)
        os.environ.setdefault("PERFLAB_COMPILED", f"/var/tmp/perflab-test-compiled-{os.getuid()}")
        yield root
        cleanup.remove_of_kind(None)


@pytest.fixture(
    scope="module", params=["process", pytest.param("docker", marks=pytest.mark.docker)]
)
def backend_name(request: pytest.FixtureRequest) -> str:
    """Each backend in turn; Docker is left out only where no engine is required or running."""
    name: str = request.param
    if name == "docker":
        from perflab.stacks.docker.engine import connect

        try:
            connect()
        except BackendUnavailable:
            if os.environ.get("PERFLAB_REQUIRE_DOCKER") == "1":
                raise
            pytest.skip("no Docker engine answers")
    return name
