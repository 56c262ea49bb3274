"""Build the documents as a site: notebooks drawn from the reference, a gallery, search.

    python scripts/site.py [FOLDER [NAME...]]      # default: build/site, and all notebooks

The pages keep their places, so their links hold. A notebook of which a run ships is executed with
``from_run="reference"``, which measures nothing; where notebooks are named, only these are.
Commands and parameters are what the code prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copy2, copytree
from tempfile import TemporaryDirectory

import typer
from typer.testing import CliRunner

from perflab import systems
from perflab.api import open_run
from perflab.cli import app
from perflab.paths import project_root
from perflab.recordings.reference import reference_ids
from perflab.reports.figures import views_of

ROOT = project_root()
BIN = Path(sys.executable).parent
COPIED = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "figures/readme", "figures/studies",
    "data/published", "data/reference/README.md", "benchmarks/results",
)  # fmt: skip
# What is printed is as wide as a page.
PRINTED = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
TITLE = re.compile(r"^# (.*)$", re.MULTILINE)
# A view that a cell draws, and its picture below the cell.
DRAWN = re.compile(
    r'^perflab\.draw\(run, "(\w+)"(?:(?!^```python).)*?^!\[.*?\]\((.*?)\)', re.MULTILINE | re.DOTALL
)


def build(target: Path, names: Collection[str] = ()) -> None:
    """Build the site in a folder, which is written anew; draw the named notebooks, or all."""
    with TemporaryDirectory() as folder:
        work = Path(folder)
        source = work / "source"
        for name in COPIED:
            place = source / name
            place.parent.mkdir(parents=True, exist_ok=True)
            (copytree if (ROOT / name).is_dir() else copy2)(ROOT / name, place)
        write_reference(source / "docs" / "reference")
        pages = write_notebooks(work, source / "notebooks", names)
        (source / "docs" / "gallery.md").write_text(gallery(pages))
        generated = {"SITE_SOURCE": str(source), "SITE_TARGET": str(target)}
        called(
            [str(BIN / "uv"), "run", "--no-project", "--with-requirements",
             str(ROOT / "scripts" / "site.lock"), "mkdocs", "build", "--strict", "--quiet",
             "--config-file", str(ROOT / "scripts" / "mkdocs.yml")],
            {**os.environ, **generated, "VIRTUAL_ENV": str(BIN.parent)},
        )  # fmt: skip


def write_reference(folder: Path) -> None:
    """Write the pages of commands and of parameters, as the code prints them."""
    commands = list(_commands(typer.main.get_command(app)))
    helps = {" ".join(("perflab", *words)): (*words, "--help") for words in [(), *commands]}
    parameters = {name: ("experiments", name) for name in systems.names()}
    for name, title, entries in (
        ("commands", "Commands", helps),
        ("parameters", "Parameters of the experiments", parameters),
    ):
        parts = [
            f"## {head}\n\n```text\n{printed(words).strip(chr(10))}\n```\n"
            for head, words in entries.items()
        ]
        (folder / f"{name}.md").write_text("\n".join([f"# {title}\n", *parts]))


def printed(words: Sequence[str]) -> str:
    """Return what perflab prints when it is called with these words."""
    done = CliRunner(env=PRINTED).invoke(app, words, prog_name="perflab", catch_exceptions=False)
    if done.exit_code:
        raise SystemExit(f"perflab {' '.join(words)}\n{done.output}")
    return done.stdout


def _commands(group: object, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in getattr(group, "commands", {}).items():
        yield (*above, name)
        yield from _commands(command, (*above, name))


def write_notebooks(work: Path, folder: Path, names: Collection[str]) -> list[Path]:
    """Write every notebook as a page of Markdown; return those that were drawn from a run."""
    folder.mkdir()
    # Ids name the experiment.
    shipped = {run_id.split("-")[1] for run_id in reference_ids()}
    if lacking := set(names) - shipped:
        told = ", ".join(sorted(shipped))
        raise SystemExit(f"no run of {', '.join(sorted(lacking))} ships; runs of these do: {told}")
    drawn = shipped & set(names or shipped)
    places = {"PERFLAB_RUNS": str(work / "runs"), "PERFLAB_FIGURES": str(work / "figures")}

    def copied(notebook: Path) -> Path:
        copy = folder / notebook.name
        if notebook.stem in drawn:
            call = [str(BIN / "papermill"), str(notebook), str(copy), "-p", "from_run", "reference"]
            called([*call, "--no-progress-bar", "--cwd", str(notebook.parent)], os.environ | places)
        else:
            copy2(notebook, copy)
        return copy

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        copies = list(pool.map(copied, sorted((ROOT / "notebooks").glob("*.ipynb"))))
    convert = [str(BIN / "jupyter-nbconvert"), "--to", "markdown", "--log-level", "ERROR"]
    called([*convert, *map(str, copies)], os.environ)
    for copy in copies:
        copy.unlink()
    return [copy.with_suffix(".md") for copy in copies if copy.stem in drawn]


def gallery(pages: Sequence[Path]) -> str:
    """Return a page with every figure of the notebooks; each leads to its notebook."""
    parts = [
        "# Gallery\n\nEvery figure is drawn from a run that ships, by the notebook it leads to.\n"
    ]
    for page in pages:
        run = open_run(f"reference:{page.stem}")
        filled = {view.name for view in views_of(run) if len(view.shown(run))}
        text, notebook = page.read_text(), f"../notebooks/{page.name}"
        title = TITLE.search(text)
        parts.append(f"## [{title.group(1) if title else page.stem}]({notebook})\n")
        parts += [
            f'[![{view}](../notebooks/{place}){{ width="32%" loading=lazy }}]({notebook})'
            for view, place in DRAWN.findall(text)
            if view in filled
        ]
        parts.append("")
    return "\n".join(parts)


def called(command: Sequence[str], environment: dict[str, str]) -> str:
    """Return what a program prints; where it fails, end with its words."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "build/site").resolve(), sys.argv[2:])
