"""The registry's whole stack in both backends: moto as a process, the gateway in Docker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from registering import MODELS, PATH, SIZE, download, refusal, serving
from registry.settings import Settings
from running import call

from perflab.host.placing import placement
from perflab.stacks import leftovers
from perflab.stacks.choice import choose
from perflab.stacks.residents import Residents
from perflab.systems.registry.service import stack

pytestmark = pytest.mark.slow
ENGINES = {"process": "moto", "docker": "gateway"}


@pytest.fixture
def residents(backend_name: str) -> Iterator[Residents]:
    settings = {"handler": "to_thread", "executor_threads": 33, "pool_connections": 17}
    plan = stack(settings, model_bytes=SIZE, models=MODELS)
    made = Residents(choose(backend_name), {"it": plan}, placement(), f"registry-{os.getpid()}")
    made.prepare()
    made.start()
    yield made
    made.stop()
    assert leftovers.everything() == []


def test_every_handler_serves_out_of_the_store_of_either_backend(
    residents: Residents, backend_name: str, tmp_path: Path
) -> None:
    residents.activate("it")  # compares the settings in force with those that are wanted
    ports = {name: item.launch.port for name, item in residents.active("it").items()}
    shown = residents.reported["it"]
    assert shown["store"]["engine"] == ENGINES[backend_name]
    assert shown["metadata"]["engine"] == "moto"
    assert (shown["registry"]["threads_of_line"], shown["registry"]["pool_connections"]) == (33, 17)
    status, headers, data = download(ports["registry"])
    assert (status, len(data)) == (200, SIZE)
    assert residents.counts("it")["registry"]["completed"] == 1
    assert residents.counts("it")["store"]["rss_bytes"] > 1_000_000

    secret = tmp_path / "secret"
    secret.write_text(residents.instance("it", "store").launch.secret)
    settings = Settings(
        store_address=f"http://127.0.0.1:{ports['link']}",
        database_address=f"http://127.0.0.1:{ports['metadata']}",
        secret_file=secret,
    )
    for handler, body in (("async", "streamed"), ("ranged", "buffered"), ("threads", "streamed")):
        with serving(Settings(**{**vars(settings), "handler": handler, "body": body})) as registry:
            assert download(registry.port)[2] == data, handler
    with serving(Settings(**{**vars(settings), "handler": "redirect"})) as registry:
        place = download(registry.port)[1]["location"]
    at, _, path = place.removeprefix("http://127.0.0.1:").partition("/")
    assert download(int(at), f"/{path}")[2] == data
    assert headers["content-length"] == str(SIZE)


def test_either_store_keeps_the_connection_on_which_it_has_answered(residents: Residents) -> None:
    residents.activate("it")
    port = residents.active("it")["registry"].launch.port
    before = residents.counts("it")["registry"]["store_connections"]["requests"]
    for _ in range(2):
        assert download(port)[0] == 200
    after = residents.counts("it")["registry"]["store_connections"]
    assert after["requests"] - before == 2
    assert after["created"] == 1


def test_no_store_gives_anything_to_who_has_not_its_password(
    residents: Residents, tmp_path: Path
) -> None:
    ports = {name: item.launch.port for name, item in residents.active("it").items()}
    for node in ("store", "metadata"):
        assert download(ports[node], f"/models{PATH}")[0] == 403
    wrong = tmp_path / "secret"
    wrong.write_text("nobody-gave-this-password")
    settings = Settings(
        handler="threads",
        store_address=f"http://127.0.0.1:{ports['store']}",
        database_address=f"http://127.0.0.1:{ports['metadata']}",
        secret_file=wrong,
    )
    with serving(settings) as registry:
        assert refusal(registry.port)[:2] == (502, "store_broken")
    shown = call(ports["registry"], "GET", "/settings").body
    assert residents.instance("it", "store").launch.secret not in str(shown)
    assert "nobody-gave-this-password" not in str(shown)
