"""No load and no notebook of the README can mislead: the loads are sent, in short."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import perflab as perflab_package
from perflab import systems
from perflab.load import users
from perflab.paths import notebooks_dir, project_root
from tests.cli.test_commands import EVERY
from tests.load.processes import served

README = (project_root() / "README.md").read_text()
URL = "http://127.0.0.1:8000/"
LONGEST_S = 3.0
# The status of a load whose client cannot vouch for it; a busy machine may do that to one of three.
INVALID = 3
BIN = Path(sys.executable).parent
# What a busy machine does to a load; anything else would speak against the command.
NOISE = re.compile(r"generator lag|event-loop delay|the client (was|used|stood still)|Little's law")
BUSY = re.compile(rf"{NOISE.pattern}|other guests of the machine took")
# What a server that answers one request at a time can take, at 5 ms each.
MOST_PER_S = 200


def commands(program: str) -> list[list[str]]:
    """Return the README's commands of a program, as words; ``make`` has tests of its own."""
    blocks = re.findall(r"^```\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    # A command in a sentence may be broken over two lines.
    lines += [" ".join(text.split()) for text in re.findall(r"`(perflab [^`]+)`", README)]
    found = [shlex.split(line, comments=True) for line in lines if line.strip()]
    own = [words[1:] for words in found if words[0].removeprefix(".venv/bin/") == program]
    return list(map(list, dict.fromkeys(map(tuple, own))))


LOADS = [words for words in commands("perflab") if words[0] == "load"]
SEARCHES = [words for words in LOADS if "--find-capacity" in words]
SENT = [words for words in LOADS if words not in SEARCHES]


@pytest.mark.parametrize("words", commands("papermill"), ids=" ".join)
def test_a_notebook_that_is_run_exists_and_has_the_parameters(words: list[str]) -> None:
    notebook = project_root() / words[0]
    pairs = [at for at, word in enumerate(words) if word == "-p"]
    values = {words[at + 1]: words[at + 2] for at in pairs}
    assert notebook.is_file()
    # papermill itself turns numbers into numbers.
    typed = {name: int(text) if text.isdigit() else text for name, text in values.items()}
    chosen = systems.experiment(notebook.stem)
    chosen.plan(chosen.check(typed))


def test_make_notebook_opens_a_page_that_exists() -> None:
    assert re.search(r"^make notebook\b", README, re.MULTILINE)
    makefile = (project_root() / "Makefile").read_text()
    (opened,) = re.findall(r"\b(\w+\.ipynb)[\"]? \$\(ARGS\)", makefile)
    assert (notebooks_dir() / opened).exists()


def test_the_readme_shows_what_these_tests_are_made_for() -> None:
    assert len(SENT) >= 3
    assert len(SEARCHES) == 1


def run(words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "perflab", *words], cwd=cwd, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with served("0.002") as port:
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the script that the README points to."""
    code = (users.__doc__ or "").split("\n\n", 1)[1].rpartition("\n\nEvery request")[0]
    (tmp_path / "shop.py").write_text(textwrap.dedent(code))
    return tmp_path


def shortened(words: list[str], server: str) -> tuple[list[str], float]:
    """Return a load's words for a test server, no longer than three seconds, and its length."""
    changed = [server if word == URL else word for word in words]
    assert server in changed
    (at,) = [at for at, word in enumerate(words) if word in ("-d", "--duration")]
    length_s = min(float(words[at + 1]), LONGEST_S)
    changed[at + 1] = f"{length_s:g}"
    return changed, length_s


@pytest.mark.alone
@pytest.mark.parametrize("words", SENT, ids=" ".join)
def test_a_load_does_what_it_says(words: list[str], server: str, folder: Path) -> None:
    changed, length_s = shortened(words, server)
    done = run([*changed, "--json"], folder)
    shown = json.loads(done.stdout)
    assert done.returncode == (0 if shown["valid"] else 3), done.stderr
    assert [each for each in shown["reasons"] if not NOISE.match(each["text"])] == []
    assert (shown["errors"], shown["unsent"]) == (0, 0)
    assert 0.85 * length_s <= shown["duration_s"] < 2 * length_s
    given = EVERY[words[0]].make_context(words[0], words[1:]).params
    if given["rate"]:
        expected = given["rate"] * length_s
        assert shown["requests"] == pytest.approx(expected, abs=5 * expected**0.5)
    if given["script"]:
        assert {row["name"] for row in shown["by_name"]} >= {"POST /login", "items"}
    if given["out"]:
        names = sorted(path.name for path in (folder / given["out"]).iterdir())
        assert names == ["load.json", "requests.parquet"]
        assert run(["show", given["out"]], folder).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", SEARCHES, ids=" ".join)
def test_a_search_for_capacity_ends_with_a_sentence(words: list[str]) -> None:
    # What a server that answers one request at a time can take is soon found.
    with served("0.005", "one") as port:
        changed = [f"http://127.0.0.1:{port}/" if word == URL else word for word in words]
        # A p90 needs a tenth of the answers of a p99.
        changed = [word.replace("p99<", "p90<") for word in changed]
        done = run([*changed, "-d", "0.3", "--json"], project_root())
    found = json.loads(done.stdout)
    says_what_can_be(found)
    assert found["sentence"]
    assert re.search(r"^ +[\d.]+  p50 [\d.]+", done.stderr, re.MULTILINE), done.stderr
    if done.returncode == INVALID:
        # No level was held, for each was refused: a busy machine is told, and nothing else.
        assert (found["low"], found["limit"]) in ((0, "client"), (0, "unknown"))
    else:
        assert done.returncode == 0, done.stderr
        assert found["low"] >= 50


def says_what_can_be(found: dict[str, Any]) -> None:
    """Check a search, also one that ends in a refusal, against what nobody's noise excuses."""
    assert found["probes"]
    for probe in found["probes"]:
        spoilt = [*probe["faults"], *probe["unclear"]]
        assert all(BUSY.match(each["text"]) for each in spoilt), spoilt
        # One at a time and 5 ms each: 200/s at most, whatever the machine does.
        assert probe["level"] < 1.25 * MOST_PER_S or spoilt or probe["missed"]
    assert found["low"] < 1.25 * MOST_PER_S


def test_the_call_for_notebooks_does_the_same(server: str) -> None:
    (call,) = re.findall(r"`(perflab\.send_load\(url, [^`]+\))`", README)
    shorter = re.sub(r"duration=\d+", "duration=1", call)
    shown = eval(shorter, {"perflab": perflab_package, "url": server})
    assert shown.requests + shown.unsent == 1000
