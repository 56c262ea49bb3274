"""Runs as sections of a document, in the formats that documents are written in."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perflab.errors import ExportRefused, ParameterError
from perflab.parameters import did_you_mean
from perflab.recordings import Run
from perflab.reports import drafts, pandoc, web
from perflab.reports.drafts import Draft
from perflab.reports.figures import Figure, figures_of
from perflab.reports.marked_regions import HTML, MARKDOWN, NAME, TEX
from perflab.reports.pictures import save_all
from perflab.reports.seals import digest_of
from perflab.reports.section import section_text

FORMATS = ("md", "html", "pdf", "docx", "tex")
OF_DOCUMENTS = ("pdf", "docx", "tex")
SEVERAL = "report"
# Word and LaTeX take no SVG.
PRINTED = (".png",)


@dataclass(frozen=True)
class Target:
    """Where an export goes: figures to ``folder``, Markdown to ``into`` if that is named."""

    folder: Path
    into: Path | None = None
    name: str = ""
    overwrite: bool = False


@dataclass(frozen=True)
class Part:
    """A run in a document: the name of its region, and its figures as files in a folder."""

    name: str
    run: Run
    saved: tuple[Path, ...]


def export_runs(runs: Sequence[Run], target: Target, formats: Sequence[str]) -> list[Path]:
    """Write the documents of runs; return their paths and those of figures and tables.

    Raises
    ------
    ParameterError
        A format is not known, or what is asked contradicts itself.
    ExportRefused
        Something is in the way; then nothing was written.
    """
    made = planned(runs, target, formats)
    # Figures first: a text never links what is not there.
    for draft in made:
        drafts.write(draft)
    return [draft.path for draft in made]


def stale(runs: Sequence[Run], target: Target, formats: Sequence[str]) -> list[str]:
    """Return what an export would change, in words; nothing is written."""
    made = planned(runs, replace(target, overwrite=True), formats)
    return [text for draft in made for text in draft.stale]


def planned(runs: Sequence[Run], target: Target, formats: Sequence[str]) -> list[Draft]:
    """Return what an export would write: figures and tables, then documents."""
    _check(runs, target, formats)
    pandoc.check_installed([each for each in OF_DOCUMENTS if each in formats])
    with tempfile.TemporaryDirectory(prefix="perflab-export-") as name:
        workshop = Path(name)
        parts = [
            Part(region, run, tuple(save_all(run, workshop / region)))
            for region, run in zip(region_names(runs), runs, strict=True)
        ]
        documents = list(_documents(parts, target, formats, workshop))
        # A page of HTML, a PDF and a Word file hold their figures.
        linked = {"md", "tex"} & set(formats)
        files = [
            drafts.copied(target.folder / path.relative_to(workshop), path.read_bytes())
            for part in parts
            for path in part.saved
            if linked or path.suffix == ".csv"
        ]
    return [*files, *documents]


def region_names(runs: Sequence[Run]) -> list[str]:
    """Return the names of the runs' regions: their experiments', numbered where there are several.

    Raises
    ------
    ExportRefused
        An experiment has a name that no file can have.
    """
    found: list[str] = []
    for run in runs:
        name = run.record.experiment
        if not NAME.fullmatch(name):
            raise ExportRefused(
                f"run {run.run_id}: the name of its experiment, {name!r:.80}, cannot name a file"
            )
        before = sum(each.record.experiment == name for each in runs[: len(found)])
        found.append(f"{name}-{before + 1}" if before else name)
    return found


def _check(runs: Sequence[Run], target: Target, formats: Sequence[str]) -> None:
    problems = [
        f"no format '{each}'{did_you_mean(each, FORMATS)}; there are: {', '.join(FORMATS)}"
        for each in formats
        if each not in FORMATS
    ]
    ids = [run.run_id for run in runs]
    problems += [f"run {each} is named twice" for each in dict.fromkeys(ids) if ids.count(each) > 1]
    problems += [] if runs else ["name a run; 'perflab runs' lists them"]
    problems += [] if formats else [f"name a format: {', '.join(FORMATS)}"]
    if target.name and not NAME.fullmatch(target.name):
        problems.append(f"--name {target.name}: a name is of letters, digits, '-', '_' and '.'")
    if target.into and set(formats) != {"md"}:
        problems.append("--into takes Markdown alone; export other formats by themselves")
    if target.into and target.name:
        problems.append("--name does not go with --into, which names the document")
    if problems:
        raise ParameterError("perflab export", problems)


def _documents(
    parts: Sequence[Part], target: Target, formats: Sequence[str], workshop: Path
) -> Iterator[Draft]:
    names = dict.fromkeys(part.run.record.experiment for part in parts)
    stem = target.name or (next(iter(names)) if len(names) == 1 else SEVERAL)
    title = "; ".join(part.run.record.title for part in parts)
    for each in (known for known in FORMATS if known in formats):
        path = target.folder / f"{stem}.{each}"
        if each == "md":
            yield _markdown(parts, target, path, workshop)
        elif each == "html":
            bodies = {
                part.name: web.section_html(_text(part, workshop), _pictures(part, workshop))
                for part in parts
            }
            around = web.whole_page(title)
            yield drafts.marked(path, bodies, HTML, around, overwrite=target.overwrite)
        elif each == "tex":
            texts = {part.name: _text(part, workshop, PRINTED) for part in parts}
            bodies = {name: pandoc.tex(text) for name, text in texts.items()}
            around = pandoc.tex_document("\n".join(texts.values()))
            yield drafts.marked(path, bodies, TEX, around, overwrite=target.overwrite)
        else:
            yield _whole(parts, target, path, workshop, title)


def _markdown(parts: Sequence[Part], target: Target, path: Path, workshop: Path) -> Draft:
    document = target.into.resolve() if target.into else path
    level = 2 if target.into else 1
    bodies = {}
    for part in parts:
        figures = figures_of(part.run, part.saved, workshop)
        away = Path(_relative(target.folder, document.parent))
        bodies[part.name] = section_text(part.run, [_moved(each, away) for each in figures], level)
    return drafts.marked(
        document, bodies, MARKDOWN, append=target.into is not None, overwrite=target.overwrite
    )


def _whole(parts: Sequence[Part], target: Target, path: Path, workshop: Path, title: str) -> Draft:
    word = path.suffix == ".docx"
    text = "\n\n".join(_text(part, workshop, PRINTED if word else None) for part in parts)
    pictures = [part for each in parts for part in _pictures(each, workshop).values()]
    source = digest_of(path.suffix.encode(), text.encode(), *pictures)

    def make() -> bytes:
        return pandoc.docx(text, workshop) if word else pandoc.pdf(text, workshop, title)

    return drafts.whole(path, source, make, target.overwrite)


def _text(part: Part, workshop: Path, kinds: Sequence[str] | None = None) -> str:
    """Return a section that holds its figures, so that nothing but pictures is linked."""
    chosen = {} if kinds is None else {"kinds": kinds}
    figures = figures_of(part.run, part.saved, workshop, **chosen)
    return section_text(part.run, [replace(each, files=()) for each in figures])


def _pictures(part: Part, workshop: Path) -> Mapping[str, bytes]:
    return {
        path.relative_to(workshop).as_posix(): path.read_bytes()
        for path in part.saved
        if path.suffix in (".svg", ".png")
    }


def _moved(figure: Figure, away: Path) -> Figure:
    return replace(
        figure,
        image=(away / figure.image).as_posix(),
        files=tuple((away / each).as_posix() for each in figure.files),
    )


def _relative(folder: Path, start: Path) -> str:
    return Path(os.path.relpath(folder.resolve(), start.resolve())).as_posix()
