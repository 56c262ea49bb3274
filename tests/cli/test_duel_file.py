"""A key of ``duel.toml`` of the wrong kind is told with its line, in the words of the file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from perflab.cli import app
from perflab.cli.duel_file import given
from perflab.errors import ParameterError
from perflab.paths import project_root
from perflab.trials.parameter_file import read_parameters

WHOLE = """# a comment
blocks = 2
fail_on = ["p99>1.05",
  "cpu>1.1"]
[variants]
"v1.9" = "command:cat {port}"
'v1.10' = "command:cp {port}"
[load]
body = '''
users = 9
'''
users = 2
load_line = 13
"""


def problems(text: str, folder: Path, *words: str) -> list[str]:
    """Return the lines that the command prints for a file, without the place of the file."""
    file = folder / "duel.toml"
    file.write_text(text)
    with pytest.raises(ParameterError) as caught:
        CliRunner().invoke(app, ["duel", str(file), *words], catch_exceptions=False)
    return [problem.replace(f"{file}, ", "") for problem in caught.value.problems]


def test_each_key_stands_on_the_line_where_it_begins(tmp_path: Path) -> None:
    file = tmp_path / "duel.toml"
    # As some editors on Windows begin a file.
    file.write_text(WHOLE, encoding="utf-8-sig")
    values, places = read_parameters(file, "perflab duel")
    assert values["variants"] == ["v1.9=command:cat {port}", "v1.10=command:cp {port}"]
    lines = {name: int(place.removeprefix(f"{file}, line ")[:-2]) for name, place in places.items()}
    assert lines == {"blocks": 2, "fail_on": 3, "variants": 6, "load": 9, "body": 9, "users": 12,
                     "load_line": 13}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"v1.9"', "v1.9", 'line 6: variants.v1.9 is a table: put a name with dots in quotes '
         '("v1.9" = "command:cat {port}")'),
        ('"command:cat {port}"', "7", "line 6: variants.v1.9 must be text in quotes, like"),
        ("[variants]", "[varaints]", "line 6: varaints.v1.9 is in no table of this file (did you "
         "mean 'variants'?); tables: [variants], [service] and [load]"),
        ("[load]", "[load]\nblocks = 3", "line 9: load.blocks stands both at the top"),
        ("[load]", "[service.env]\nDEBUG = true\n[load]",
         "line 9: service.env.DEBUG must be text in quotes"),
        ("blocks = 2", "seed = 2026-11-26", "line 2: seed must be text, a number or a list"),
        ("users = 2", "users = 2.5", "line 12: users = 2.5: must be a whole number"),
        ("users = 2", "think.time_s = 2", "line 12: load.think.time_s is within load.think, "
         "which must be text, a number or a list"),
        ("users = 2", 'timeout_s = "long"', "line 12: timeout_s = 'long': must be a number"),
        ("users = 2", "path = 7", "line 12: path = 7: must be text"),
        ("users = 2", "requests = 1000", "line 12: requests = 1000: "),
        ('"cpu>1.1"', "7", "line 3: fail_on = 7: must be text"),
        ("'v1.10'", "#", "line 6: variants = ['v1.9=command:cat {port}']: must have at least 2"),
        ("users = 2", "", "line 13: unknown parameter 'load_line'"),
    ],
)  # fmt: skip
def test_a_key_of_the_wrong_kind_is_told_with_its_line(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    text = WHOLE.replace(old, new, 1)
    assert any(problem.startswith(words) for problem in problems(text, tmp_path))


def test_an_option_that_overrules_the_file_has_no_line(tmp_path: Path) -> None:
    text = WHOLE.replace("users = 2", "users = 2.5")
    told = problems(text, tmp_path, "--users", "-1")
    assert "--users -1: must be 1 or more" in told


def test_a_file_that_is_not_there_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"nofile.toml: No such file or directory$"):
        given("custom_service", str(tmp_path / "nofile.toml"), {}, "")


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"duration_s": -1.0}, "--duration -1.0: must be 0.1 or more"),
        ({"design": "slice"}, "--design 'slice': must be 'auto', 'trials' or 'slices'"),
        ({"variants": ["a=command:cat {port}"]}, "--variant: must have at least 2 items"),
        (
            {"expect_status": "abc"},
            "--expect-status: a status is a number, like 200; several are 201,409",
        ),
        ({"start_timeout_s": "12e345"}, "--start-timeout '12e345': must be a finite number"),
    ],
)
def test_a_wrong_option_is_told_by_its_name_and_in_plain_words(
    option: dict[str, object], told: str
) -> None:
    variants = ["a=command:cat {port}", "b=command:cp {port}"]
    with pytest.raises(ParameterError) as caught:
        given("custom_service", "", {"variants": variants, **option}, "")
    assert caught.value.problems == (told,)


SERVICE = """
[results]
runs = "elsewhere"
[service]
command = "python3 app.py {port}"
env_file = ".env"
[service.env]
MODE = "test"
WORKERS = 2
[load]
path = "/items"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "perflab.toml").write_text(SERVICE)
    (tmp_path / ".env").write_text("LEVEL=debug\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_projects_file_says_how_its_service_is_started(project: Path) -> None:
    revisions = [f"{name}=tree:{project}" for name in ("old", "new")]
    values, _, _ = given("custom_service", "", {"variants": revisions, "path": "/other"}, "")
    assert values["env"] == ["MODE=test", "WORKERS=2"]
    assert values["env_file"] == str(project / ".env")
    assert values["folder"] == str(project)
    assert (values["command"], values["path"]) == ("python3 app.py {port}", "/other")


def test_the_file_that_the_guide_shows_is_understood(project: Path) -> None:
    guide = (project_root() / "docs" / "how-to" / "duel.md").read_text()
    (text,) = re.findall(r"```toml\n# perflab.toml\n(.*?)```", guide, re.S)
    (project / "perflab.toml").write_text(text)
    (project / ".env.test").write_text("LEVEL=debug\n")
    revisions = [f"{name}=tree:{project}" for name in ("old", "new")]
    values, _, _ = given("custom_service", "", {"variants": revisions}, "")
    assert values["needs"] == ["db=postgres", "cache=redis"]
    assert [each["name"] for each in values["requests"]] == ["list", "create"]


def test_the_projects_command_is_not_for_variants_that_bring_their_own(project: Path) -> None:
    own = [f"{name}=command:python3 {project}/other.py {{port}}" for name in ("old", "new")]
    values, _, _ = given("custom_service", "", {"variants": own}, "")
    assert "command" not in values
    assert values["path"] == "/items"


def test_what_a_project_starts_is_not_for_variants_that_run_already(project: Path) -> None:
    (project / "perflab.toml").write_text(
        SERVICE.replace("[load]", '[service.needs]\ndb = "postgres"\n[load]')
    )
    variants = [f"{name}=url:http://127.0.0.1:{port}" for name, port in (("old", 9), ("new", 8))]
    values, _, _ = given("custom_service", "", {"variants": variants}, "")
    assert {"needs", "env", "env_file", "command"}.isdisjoint(values)
    assert values["path"] == "/items"
    with pytest.raises(ParameterError, match="setup is only for variants that the lab starts"):
        given("custom_service", "", {"variants": variants, "setup": "true"}, "")


@pytest.mark.promise
def test_a_resumed_duel_keeps_the_gate_of_its_project_and_nothing_else(project: Path) -> None:
    gate = 'strict = true\nfail_on = ["p99>1.05"]\n'
    (project / "perflab.toml").write_text(gate + SERVICE)
    values, thresholds, is_strict = given("custom_service", "", {}, "some-run", ["cpu>1.1"])
    assert (values, thresholds, is_strict) == (
        {"resume": "some-run"}, ["p99>1.05", "cpu>1.1"], True,
    )  # fmt: skip


def test_a_file_that_is_named_stands_for_the_projects(project: Path) -> None:
    text = WHOLE.replace("load_line = 13", "").replace("blocks = 2", "blocks = 8")
    (project / "duel.toml").write_text(text)
    values, _, _ = given("custom_service", "duel.toml", {}, "")
    assert "env" not in values


def test_a_wrong_key_of_the_projects_file_is_told_with_its_line(project: Path) -> None:
    (project / "perflab.toml").write_text(SERVICE.replace("path", "paht"))
    with pytest.raises(ParameterError, match=r"perflab.toml, line 11: unknown parameter 'paht'"):
        given("custom_service", "", {"variants": ["a=tree:.", "b=tree:."]}, "")


def test_headers_may_be_a_table_as_they_are_of_a_request(tmp_path: Path) -> None:
    file = tmp_path / "duel.toml"
    file.write_text('[load.headers]\nX-Api-Key = "env:SHOP_KEY"\nAccept = "a=b"\n')
    values, _ = read_parameters(file, "perflab duel")
    assert values["headers"] == ["X-Api-Key: env:SHOP_KEY", "Accept: a=b"]
