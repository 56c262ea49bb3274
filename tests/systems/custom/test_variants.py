"""Variants are read, or refused with all problems at once, before anything starts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perflab import systems
from perflab.cli.scaffold import new_project
from perflab.errors import ParameterError, ServiceFailed
from perflab.stacks.process_backend import ProcessBackend
from perflab.stacks.spec import load_service
from perflab.systems.custom.parameters import OwnServiceParameters
from perflab.systems.custom.revisions import is_dirty

COMMAND = "python3 server.py --port {port}"


def git(folder: Path, *words: str) -> str:
    author = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com"]
    process = subprocess.run(
        ["git", "-C", folder, *author, *words], capture_output=True, text=True, check=True
    )
    return process.stdout.strip()


def two_revisions(folder: Path, *files: tuple[str, str]) -> Path:
    """Make a repository that commits two files, one after the other; the first commit is v1."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    for number, (name, text) in enumerate(files, 1):
        (folder / name).write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"{number}")
        git(folder, "tag", f"v{number}")
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two revisions of a service; the second has a Dockerfile."""
    files = ("server.py", "# one\n"), ("Dockerfile", "FROM scratch\n")
    return two_revisions(tmp_path / "repository", *files)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFLAB_STATE", str(tmp_path / "state"))


def checked(**values: object) -> OwnServiceParameters:
    parameters = systems.experiment("custom_service").check(values)
    assert isinstance(parameters, OwnServiceParameters)
    return parameters


def problems(**values: object) -> str:
    with pytest.raises(ParameterError) as caught:
        systems.experiment("custom_service").plan(checked(**values))
    return str(caught.value)


def test_a_revision_is_recorded_by_its_commit_and_its_place(repository: Path) -> None:
    parameters = checked(
        variants=["old=git:.@v1", "new=git:.@HEAD"], folder=str(repository), command=COMMAND
    )
    commits = [git(repository, "rev-parse", revision) for revision in ("v1", "HEAD")]
    assert parameters.variants == (
        f"old=git:{repository}@{commits[0]}",
        f"new=git:{repository}@{commits[1]}",
    )
    assert checked(**parameters.model_dump()).variants == parameters.variants


def test_all_problems_of_all_variants_are_reported_at_once(repository: Path) -> None:
    message = problems(
        variants=["a=git:.@nowhere", "b=kommand:x", "client=command:x", "c=dockerfile:.", "d"],
        folder=str(repository.parent),
        expect_status=7,
    )
    for words in ("a: ", "did you mean 'command'?", "'client' cannot be the name", "no Dockerfile"):
        assert words in message
    assert "'d' is not NAME=KIND:WHAT" in message
    assert "expect_status" in message


@pytest.mark.promise
def test_a_host_that_nobody_allowed_is_refused_before_anything_starts() -> None:
    urls = ["a=url:http://example.com", "b=url:http://127.0.0.1:8001"]
    assert "example.com" in problems(variants=urls)
    assert checked(variants=urls, allow_targets=["example.com"]).variants


def test_variants_decide_their_backend() -> None:
    assert checked(variants=["a=image:some:1", "b=image:some:2"]).backend == "docker"
    assert checked().backend == "process"
    assert "need 'process'" in problems(backend="docker")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"variants": ["a=git:.@v1", "b=git:.@HEAD"]}, "has no Dockerfile; give the command"),
        ({"variants": [f"a=command:{COMMAND}", "b=image:some:tag"]}, "all run on one backend"),
        ({"variants": ["a=command:serve {prot}", f"b=command:{COMMAND}"]}, "'{prot}'"),
        ({"env": ["A={db.url}"]}, 'declare it: [service.needs] db = "postgres"'),
        ({"env": ["A={cache.url}"]}, 'declare it: [service.needs] cache = "redis"'),
        ({"users": 3, "rate": 5}, "give rate, or users"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    values: dict[str, object], words: str, repository: Path
) -> None:
    assert words in problems(folder=str(repository), **values)


def test_a_variant_that_is_named_setup_is_checked_beside_the_setup() -> None:
    variants = ["setup=command:no-such-program --port {port}", f"b=command:{COMMAND}"]
    assert "setup: there is no program 'no-such-program'" in problems(
        variants=variants, setup="true"
    )


@pytest.mark.promise
def test_no_credential_of_a_command_stays_among_its_arguments() -> None:
    command = f"command:env MODE=prod DB_PASSWORD=hunter2-Qq STYLE=a {COMMAND}"
    variants = [f"a={command}", f"b={command} --new"]
    plan = systems.experiment("custom_service").plan(checked(variants=variants))
    service = load_service(plan.treatments[0].stack.nodes[-1].service)
    assert "MODE=prod STYLE=a python3" in " ".join(service.command)
    assert "DB_PASSWORD" not in " ".join(service.command)
    assert service.environment["DB_PASSWORD"].startswith("{env:DB_PASSWORD")


def test_a_setup_may_take_hours_and_not_for_ever() -> None:
    parameters = checked(needs=["db=postgres"], setup="true")
    treatment = systems.experiment("custom_service").treatments(parameters)[0]
    setup = load_service(treatment.stack.nodes[-1].service).setup
    assert setup is not None
    assert 3600 < setup.timeout_s <= 24 * 3600


def test_at_the_root_of_a_monorepo_the_folders_of_projects_are_named(repository: Path) -> None:
    place = repository / "services" / "quotes"
    place.mkdir(parents=True)
    (place / "perflab.toml").touch()
    message = problems(folder=str(repository), variants=["a=git:.@v1", "b=git:.@HEAD"])
    assert "or call it from a folder that has a perflab.toml: services/quotes" in message


SETUPS_FOR_A_SHELL = {
    "serve -migrate && serve -admin": "&&", "serve -migrate; serve -admin": ";",
    "sh -c 'serve -migrate' || true": "||", "serve -migrate 2> log": "2>", "serve | tee log": "|",
}  # fmt: skip


@pytest.mark.parametrize("setup", SETUPS_FOR_A_SHELL)
def test_what_only_a_shell_would_read_is_refused(setup: str) -> None:
    message = problems(needs=["db=postgres"], setup=setup)
    assert f"setup: no shell reads it, and '{SETUPS_FOR_A_SHELL[setup]}' would be an" in message
    assert "write sh -c '...'" in message


@pytest.mark.parametrize(
    "setup",
    ["sh -c 'cat x && env | sort; true'", 'cat "a | b > c; d"', r"cat \; a;b", "cat '&&' --x='>'"],
)
def test_what_stands_in_quotes_is_an_argument(setup: str) -> None:
    assert checked(needs=["db=postgres"], setup=setup).setup == setup


def test_a_file_that_a_command_starts_is_looked_for_in_the_folder_and_not_in_other_variants(
    repository: Path,
) -> None:
    values: dict[str, object] = {
        "variants": ["a=command:./serve {port}", "b=git:.@HEAD"],
        "folder": str(repository),
        "command": COMMAND,
    }
    assert f"a: there is no {repository / 'serve'}" in problems(**values)
    (repository / "serve").touch()
    assert checked(**values).backend == "process"


def test_a_variant_is_described_once_and_found_by_its_name(repository: Path) -> None:
    values = {"variants": ["o=git:.@v1", "N=git:.@HEAD"], "folder": str(repository)}
    custom_service = systems.experiment("custom_service")
    parameters = checked(**values, command=COMMAND, health="/ready")
    (first, second), again = (
        custom_service.treatments(parameters),
        custom_service.treatments(parameters),
    )
    assert [first, second] == list(again)
    (node,) = second.stack.nodes
    description = load_service(node.service)
    assert description.health.http == "/ready"
    assert not description.health.any_status
    assert description.command[-4:] == ("python3", "server.py", "--port", "{port}")
    assert first.stack.nodes[0].service != node.service


def test_a_revision_that_brings_a_dockerfile_is_built_from_its_own_files(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    (repository / "Dockerfile").write_text("changed, not committed\n")
    parameters = checked(variants=["a=git:.@HEAD", f"b=git:.@{head}"], folder=str(repository))
    assert parameters.backend == "docker"
    treatment = systems.experiment("custom_service").treatments(parameters)[0]
    folder = load_service(treatment.stack.nodes[0].service).folder
    assert (folder / "Dockerfile").read_text() == "FROM scratch\n"
    (warning,) = systems.experiment("custom_service").warnings(parameters)
    assert "not committed" in warning.text


def test_what_new_project_writes_is_no_change_of_a_revision(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".gitignore").write_text("*.pyc\n")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "ignored")
    monkeypatch.chdir(repository)
    new_project()
    assert git(repository, "status", "--porcelain").count("\n") == 2
    assert not is_dirty(repository)
    git(repository, "add", "perflab.toml")
    git(repository, "commit", "--quiet", "-m", "a project")
    (repository / "perflab.toml").write_text("[load]\nusers = 2\n")
    assert not is_dirty(repository)
    (repository / "new.py").touch()
    assert is_dirty(repository)


def test_a_folder_of_variants_that_is_a_link_is_refused(repository: Path, tmp_path: Path) -> None:
    parameters = checked(
        variants=["a=git:.@v1", "b=git:.@HEAD"], folder=str(repository), command=COMMAND
    )
    service = systems.experiment("custom_service").treatments(parameters)[0].stack.nodes[0].service
    place = tmp_path / "state" / "variants"
    assert place.stat().st_mode & 0o777 == 0o700
    assert load_service(service).name == service
    theirs = tmp_path / "theirs"
    place.rename(theirs)
    place.symlink_to(theirs)
    with pytest.raises(Exception, match="is a link"):
        load_service(service)


def test_a_preparation_that_fails_is_told_with_its_variant_and_its_line(repository: Path) -> None:
    parameters = checked(
        variants=["old=git:.@v1", "New=git:.@HEAD"], folder=str(repository), command=COMMAND,
        prepare="seq 500 && echo the reason && exit 3",
    )  # fmt: skip
    node = systems.experiment("custom_service").treatments(parameters)[1].stack.nodes[0]
    with pytest.raises(ServiceFailed) as caught:
        ProcessBackend().prepare(load_service(node.service))
    first, *_, last = lines = str(caught.value).splitlines()
    assert first.startswith("service 'New': prepare (seq 500 && echo the reason && exit 3) ended")
    assert last == "  | the reason"
    assert len(lines) < 40


def refused(repository: Path, revision: str) -> str:
    return problems(
        variants=[f"old=git:.@{revision}", "new=git:.@HEAD"],
        folder=str(repository),
        command=COMMAND,
    )


def test_a_missing_revision_is_named_with_the_way_to_it(repository: Path, tmp_path: Path) -> None:
    assert "has no revision 'v3' (did you mean 'v" in refused(repository, "v3")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(repository), str(clone))
    git(clone, "remote", "set-head", "origin", "--delete")
    branch = git(clone, "branch", "--show-current")
    git(clone, "checkout", "--quiet", "--detach")
    git(clone, "branch", "--quiet", "-D", branch)
    assert f"but origin/{branch}: name that one" in refused(clone, branch)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repository}", str(shallow))
    assert "git fetch --unshallow --tags" in refused(shallow, "v1")
    message = refused(tmp_path, "v1")
    assert "fatal: not a git repository" in message
    assert "tree:FOLDER" in message


def test_a_repository_of_another_owner_is_refused_with_the_way_to_trust_it(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    message = refused(repository, "v1")
    assert "fatal: detected dubious ownership" in message
    assert f"run 'git config --global --add safe.directory {repository}'" in message


@pytest.mark.parametrize("revision", ["HEAD@{1}", "main@{1}", "@{1}"])
def test_a_revision_of_the_reflog_is_found(repository: Path, revision: str) -> None:
    git(repository, "branch", "-m", "main")
    first, _ = checked(
        variants=[f"old=git:.@{revision}", "new=git:.@@"], folder=str(repository), command=COMMAND
    ).parsed_variants
    assert first.commit == git(repository, "rev-parse", revision)


def test_a_duel_says_where_the_old_side_has_more_than_the_new_one_lacks(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "--quiet", "-b", "branch")
    git(repository, "commit", "--quiet", "--allow-empty", "-m", "of the branch")
    git(repository, "checkout", "--quiet", "-b", "target", base)
    git(repository, "commit", "--quiet", "--allow-empty", "-m", "meanwhile")

    def remarks(old: str) -> list[str]:
        parameters = checked(
            variants=[f"old=git:.@{old}", "new=git:.@branch"],
            folder=str(repository),
            command=COMMAND,
        )
        return [each.text for each in systems.experiment("custom_service").warnings(parameters)]

    (text,) = remarks("target")
    assert "old has commits that new lacks" in text
    assert base[:9] in text
    assert remarks(base) == []


def test_a_command_may_hold_any_character() -> None:
    odd = "echo '\N{GRINNING FACE} \x7f \\ \"' {port}"
    parameters = checked(variants=[f"a=command:{odd}", f"b=command:{COMMAND}"], folder=".")
    node = systems.experiment("custom_service").treatments(parameters)[0].stack.nodes[0]
    assert load_service(node.service).command[-2] == '\N{GRINNING FACE} \x7f \\ "'
