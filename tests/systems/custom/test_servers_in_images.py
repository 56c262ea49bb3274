"""What a service needs may be a server in an image: a fresh container for every block."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab import api, systems
from perflab.credentials import filled_in
from perflab.load.literals import by_reference
from perflab.stacks import cleanup
from perflab.stacks.spec import load_service
from perflab.systems.custom import needs
from perflab.trials.parameter_file import read_parameters
from tests.support.typing_in import perflab
from tests.systems.custom.test_variants import checked, problems

VARIANTS = ["a=command:sleep {port}", "b=command:sleep {port}"]
PROGRAM = Path(__file__).with_name("counting_server.py")
SEARCH = {"image": "docker.io/others/search:1", "port": 9200, "env": {"discovery.type": "single"}}
PROJECT = """
[service]
command = "{python} {program} serve {{port}} {{counts.url}}"
setup = "{python} {program} fill 40 {{counts.host}} {{counts.port}}"
health = "/health"

[service.needs]
counts = {{image = "perflab-test-counts", port = 7100, env = {{"START.AT" = "2"}}}}

[load]
path = "/"
"""


@pytest.fixture
def _engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an engine answer that nobody asks for more."""
    monkeypatch.setattr(needs, "docker_client", object)


def needed(**changed: object) -> list[str]:
    return [f"search={json.dumps({**SEARCH, **changed})}"]


@pytest.mark.usefixtures("_engine")
def test_each_variant_has_a_container_of_its_own_of_the_image() -> None:
    asked = {"variants": VARIANTS, "needs": [*needed(), "db=postgres:18"]}
    parameters = checked(**asked, env=["SEARCH={search.url}"], setup="cat {search.host}")
    first, second = systems.experiment("custom_service").treatments(parameters)
    assert [node.apart for node in first.stack.nodes] == ["a", "a", ""]
    assert first.stack.nodes[0].name == "a.search"
    assert first.stack.nodes[0].service == second.stack.nodes[0].service
    spec = load_service(first.stack.nodes[0].service)
    assert (spec.docker.image, spec.docker.port) == (SEARCH["image"], 9200)
    assert spec.environment == SEARCH["env"]
    (text,) = (each.text for each in systems.experiment("custom_service").warnings(parameters))
    assert text.startswith("search: requests to it pass the container engine")
    assert checked(**parameters.model_dump()) == parameters


def test_without_an_engine_it_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    text = problems(variants=VARIANTS, needs=needed())
    assert "search must run in a container, and no Docker engine of this machine answers" in text
    assert "DOCKER_HOST=unix:///" in text


@pytest.mark.usefixtures("_engine")
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"port": 0}, "needs: search: port: must be 1 or more"),
        ({"port": "9200x"}, "port: must be a whole number"),
        ({"ports": [1]}, "ports: is no key of an image (did you mean 'port'?)"),
        ({"image": ""}, "image: "),
        ({"env": {"A=B": "x"}}, "env.A=B"),
        ({"env": {"A": "{prot}"}}, "search.env.A: '{prot}' in '{prot}' has no value"),
    ],
)
def test_a_wrong_key_is_refused_with_an_example(changed: dict[str, object], words: str) -> None:
    assert words in problems(variants=VARIANTS, needs=needed(**changed))


@pytest.mark.usefixtures("_engine")
def test_what_only_stores_of_the_lab_tell_is_refused_of_an_image() -> None:
    text = problems(variants=VARIANTS, needs=needed(), env=["A={search.password}"])
    assert "'{search.password}' in '{search.password}' has no value" in text


@pytest.mark.parametrize(
    "text",
    [
        'needs = {search = {image = "x:1", port = 9200, env = {A = "b"}}}',
        '[service.needs]\nsearch = {image = "x:1", port = 9200, env = {A = "b"}}',
        '[service.needs.search]\nimage = "x:1"\nport = 9200\n[service.needs.search.env]\nA = "b"',
        'needs.search.image = "x:1"\nneeds.search.port = 9200\nneeds.search.env.A = "b"',
    ],
)
def test_every_way_to_write_a_table_is_the_same(text: str, tmp_path: Path) -> None:
    file = tmp_path / "perflab.toml"
    file.write_text(f"[service]\n{text}\n")
    values, places = read_parameters(file, "perflab duel")
    (need,) = values["needs"]
    assert need.partition("=")[0] == "search"
    assert json.loads(need.partition("=")[2]) == {"image": "x:1", "port": 9200, "env": {"A": "b"}}
    assert "needs" in places


@pytest.mark.promise
def test_a_password_of_an_image_is_recorded_by_reference() -> None:
    given = {"ADMIN_PASSWORD": "hunter2-hunter2", "PEER": "amqp://me:hunter3-hunter3@{host}"}
    values = by_reference({"needs": needed(env=given)})
    assert "hunter" not in str(values)
    env = json.loads(values["needs"][0].partition("=")[2])["env"]
    assert {filled_in(text) for text in env.values()} == {*given.values()}


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    """An image whose server listens at one port and at all addresses, as those of others do."""
    from perflab.stacks.docker import images
    from perflab.stacks.docker.engine import connect

    client = connect()
    base, _ = images.ensure(client, load_service("echo"))
    folder = tmp_path / "image"
    folder.mkdir()
    (folder / "server.py").write_bytes(PROGRAM.read_bytes())
    (folder / "Dockerfile").write_text(
        f"FROM {base}\n"
        "USER root\n"
        "COPY server.py /server.py\n"
        'ENTRYPOINT ["python3", "/server.py", "store", "7100"]\n'
    )
    name = "perflab-test-counts"
    client.images.build(path=str(folder), tag=name, rm=True)
    yield name
    client.images.remove(name, force=True)


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.parametrize("backend_name", ["docker"], indirect=True, scope="module")
@pytest.mark.usefixtures("backend_name", "image")
def test_every_start_has_a_new_container_that_the_setup_has_filled(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    described = PROJECT.format(python=sys.executable, program=PROGRAM)
    (project / "perflab.toml").write_text(described)
    server = f"command:{sys.executable} {PROGRAM} serve {{port}} {{counts.url}}"
    done = perflab(
        "duel", "--blocks", "2", "--duration", "0.5", "--warmup", "0.1", "--users", "1",
        "--env", "NOTES", "--design", "trials", f"--variant=old={server}",
        f"--variant=new={server}", cwd=project, NOTES=str(tmp_path / "notes"),
        PERFLAB_RUNS=str(tmp_path / "runs"), PERFLAB_FIGURES=str(tmp_path / "figures"),
    )  # fmt: skip
    # A busy machine may leave too few valid trials to compare.
    assert done.returncode in (0, 4), done.stdout + done.stderr
    notes = (tmp_path / "notes").read_text().split()
    # The image begins at 2, and the setup adds 40.
    assert set(notes) == {"filled", "42"}
    assert notes.count("filled") == notes.count("42") >= 4
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if (path / "run.json").is_file())
    run = api.open_run(str(folder))
    assert run.record.backend == "process"
    assert {f"setup of {name}" for name in ("old", "new")} <= run.record.notes["took_s"].keys()
    trials = run.trials()
    assert "failed" not in set(trials["state"])
    samples = run.table("samples", trials["trial_id"].tolist())
    assert {"old", "old.counts", "new", "new.counts"} <= set(samples["service"])
    # The server in the image does the work of a request.
    assert (trials["service_cpu_us_per_request"] > 2_000).all()
    assert [item.service for item in cleanup.everything() if item.kind == "run"] == []
