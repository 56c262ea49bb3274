"""Nothing in the documents leads nowhere: their links, the places they name, their commands."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from perflab import systems
from perflab.cli import app
from perflab.parameters import parse_assignments
from perflab.paths import project_root
from perflab.recordings.published_rows import Answered
from perflab.reports.ledger.entry import CHECKED, SAME, SHOWN, TAKEN_OVER

ROOT = project_root()
# From a frame of benchmarks/ a page of its results is written, whose links it has.
FRAMES = sorted((ROOT / "benchmarks").glob("*_table.md"))
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "services").glob("*/README.md")),
    *sorted((ROOT / "data").rglob("README.md")),
    *sorted(RESULTS.glob("*.md")),
    *FRAMES,
]
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:^    \S.*\n)+", re.MULTILINE)
TOP = {path.name for path in ROOT.iterdir() if path.is_dir()}
# What stands in the place of quoted words.
QUOTED = "''"
# What is made by using the lab is not there before.
MADE = ("data/runs", "data/sweeps")
# A placeholder, or what the tutorial makes.
NO_EXPERIMENT = re.compile(r"[A-Z]+|latest.*|(checkout|cart|search)_speed|-.*")


def ids(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    folder = RESULTS if page in FRAMES else page.parent
    text = FENCED.sub("", page.read_text())
    links = re.findall(r"\]\(<?([^)>\s]+)>?\)|(?:src|srcset|href)=\"([^\"]+)\"", text)
    for link in ("".join(pair) for pair in links):
        if re.match(r"https?:", link):
            continue
        place, _, anchor = link.partition("#")
        target = folder / place if place else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("name", ["verdicts", "stopping"])
def test_the_page_has_the_words_of_its_frame(name: str) -> None:
    page = (RESULTS / f"{name}.md").read_text()
    frame = (ROOT / "benchmarks" / f"{name.removesuffix('s')}_table.md").read_text()
    for words in frame.split("\n\n"):
        assert "{" in words or words.strip() in page


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_places_that_are_named_are_there(page: Path) -> None:
    named = re.findall(r"`((\w+)/[\w./-]*)`", page.read_text())
    places = [place for place, top in named if top in TOP and not place.startswith(MADE)]
    assert [each for each in places if not (ROOT / each).exists()] == []


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words after ``perflab`` of each command of a page; what is quoted is left out.

    What follows a ``git checkout`` is a command of that commit, with the parameters that it had.
    """
    text = page.read_text()
    blocks = [*FENCED.findall(text), *INDENTED.findall(FENCED.sub("", text))]
    blocks = [each.partition("git checkout ")[0] for each in blocks]
    lines = [line for each in blocks for line in re.sub(r"\\\n\s*", " ", each).splitlines()]
    lines += [" ".join(each.split()) for each in re.findall(r"`(perflab [a-z][^`]*)`", text)]
    for line in lines:
        bare = re.sub(r"'[^']*'", QUOTED, line.partition(" #")[0])
        found = re.search(r"(?:^|[\s/'\"])perflab ([a-z][^|>\"]*)", bare)
        if found is not None and not line.lstrip().startswith(("#", "<!--")):
            yield found.group(1).split()


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """Return what the words call, through groups of commands, and the words that are left."""
    found: Any = typer.main.get_command(app)
    while hasattr(found, "commands") and words and words[0] in found.commands:
        found, words = found.commands[words[0]], words[1:]
    return found, words


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_commands_and_their_options_are_those_of_the_command_line(page: Path) -> None:
    for words in commands(page):
        command, rest = command_of(words)
        assert command.name != "perflab", words
        known = {
            name
            for each in command.get_params(click.Context(command))
            for name in (*each.opts, *each.secondary_opts)
        }
        options = [each.partition("=")[0] for each in rest if re.match(r"--?[a-zA-Z]", each)]
        assert {*options} - {*known, "--help"} == set(), words


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_experiments_that_are_run_exist_and_have_the_parameters(page: Path) -> None:
    for words in commands(page):
        if words[0] not in ("run", "experiments") or len(words) == 1:
            continue
        if NO_EXPERIMENT.fullmatch(words[1]) is None:
            given = [words[at + 1] for at, word in enumerate(words) if word == "-p"]
            pairs = [each for each in given if each != QUOTED]
            chosen = systems.experiment(words[1])
            chosen.plan(chosen.check(parse_assignments(pairs)))


def test_the_reference_of_the_projects_file_is_what_the_models_say() -> None:
    script = str(ROOT / "scripts" / "toml_reference.py")
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_glossary_has_what_the_ledger_says_of_a_published_row() -> None:
    page = (ROOT / "docs" / "reference" / "glossary.md").read_text()
    for outcome in (SHOWN, CHECKED, SAME, TAKEN_OVER, Answered.NOT_COMPARABLE.value):
        assert f"**{outcome}**" in page
