"""Runs as sections of a document, in the formats that documents are written in."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perflab.errors import ExportRefused, ParameterError
from perflab.host.files import explained, whole_file
from perflab.parameters import did_you_mean
from perflab.recordings import Run
from perflab.reports import conversion
from perflab.reports.figures import save_all, views_of
from perflab.reports.regions import NAME, filled
from perflab.reports.section import Figure, brief_text, figures_of, section_text

FORMATS = ("md", "html", "pdf", "docx")
OF_DOCUMENTS = ("pdf", "docx")
SEVERAL = "report"


@dataclass(frozen=True)
class Draft:
    """A file as it was found (None: not there), and as it shall be."""

    path: Path
    before: bytes | None
    after: bytes


@dataclass(frozen=True)
class Target:
    """Where an export goes: figures to ``folder``, Markdown to ``into`` if that is named."""

    folder: Path
    into: Path | None = None
    overwrite: bool = False


@dataclass(frozen=True)
class Content:
    """What a section holds: the figures of these views (none named: of all), or only its core."""

    views: tuple[str, ...] = ()
    brief: bool = False

    def text(self, run: Run, figures: Sequence[Figure], level: int = 1) -> str:
        """Return a section in Markdown."""
        return (brief_text if self.brief else section_text)(run, figures, level)


WHOLE = Content()


@dataclass(frozen=True)
class Part:
    """A run in a document: the name of its region, and its figures as files in a folder."""

    name: str
    run: Run
    saved: tuple[Path, ...]


def export_runs(
    runs: Sequence[Run], target: Target, formats: Sequence[str], content: Content = WHOLE
) -> list[Path]:
    """Write the documents of runs; return their paths and those of figures and tables.

    Raises
    ------
    ParameterError
        A format or view is not known, or what is asked contradicts itself.
    ExportRefused
        Something is in the way; then nothing was written.
    """
    _check(runs, target, formats, content)
    conversion.check_installed([each for each in OF_DOCUMENTS if each in formats])
    with tempfile.TemporaryDirectory(prefix="perflab-export-") as name:
        workshop = Path(name)
        parts = [
            Part(region, run, tuple(save_all(run, workshop / region, names=content.views)))
            for region, run in zip(_region_names(runs), runs, strict=True)
        ]
        documents = [
            _document(kind, parts, target, content, workshop) for kind in FORMATS if kind in formats
        ]
        # A page of HTML, a PDF and a Word file hold their figures.
        files = [
            (target.folder / path.relative_to(workshop), path.read_bytes())
            for part in parts
            for path in part.saved
            if "md" in formats or path.suffix == ".csv"
        ]
    # Figures first: a text never links what is not there.
    drafts = [*(Draft(path, _read(path), content) for path, content in files), *documents]
    for draft in drafts:
        _write(draft)
    return [draft.path for draft in drafts]


def _region_names(runs: Sequence[Run]) -> list[str]:
    """Return the names of the runs' regions: their experiments', numbered where one has several."""
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


def _check(runs: Sequence[Run], target: Target, formats: Sequence[str], content: Content) -> None:
    problems = [
        f"no format '{each}'{did_you_mean(each, FORMATS)}; there are: {', '.join(FORMATS)}"
        for each in formats
        if each not in FORMATS
    ]
    ids = [run.run_id for run in runs]
    problems += [f"run {each} is named twice" for each in dict.fromkeys(ids) if ids.count(each) > 1]
    problems += [] if runs else ["name a run; 'perflab runs' lists them"]
    problems += _unknown_views(runs, content.views)
    problems += [] if formats else [f"name a format: {', '.join(FORMATS)}"]
    if target.into and set(formats) != {"md"}:
        problems.append("--into takes Markdown alone; export other formats by themselves")
    if problems:
        raise ParameterError("perflab export", problems)


def _unknown_views(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """Return a problem for each view that no run has anything to show in."""
    if not names:
        return []
    known = list(dict.fromkeys(view.name for run in runs for view in views_of(run)))
    return [
        f"no view '{name}'{did_you_mean(name, known)}; there are: {', '.join(known)}"
        for name in names
        if name not in known
    ]


def _document(
    kind: str, parts: Sequence[Part], target: Target, content: Content, workshop: Path
) -> Draft:
    """Return the draft of all parts in a format; their figures lie in ``workshop``."""
    names = list(dict.fromkeys(part.run.record.experiment for part in parts))
    path = target.folder / f"{names[0] if len(names) == 1 else SEVERAL}.{kind}"
    if kind == "md":
        return _markdown(path, parts, target, content, workshop)
    title = "; ".join(part.run.record.title for part in parts)
    # Word takes no SVG.
    kinds = (".png",) if kind == "docx" else (".svg", ".png")
    texts = [_without_links(part, content, workshop, kinds) for part in parts]
    if kind == "html":
        pictures = [_pictures(part, workshop) for part in parts]
        made = conversion.page(title, zip(texts, pictures, strict=True)).encode()
    elif kind == "docx":
        made = conversion.docx("\n\n".join(texts), workshop)
    else:
        made = conversion.pdf("\n\n".join(texts), workshop, title)
    return _whole(path, made, target.overwrite)


def _markdown(
    path: Path, parts: Sequence[Part], target: Target, content: Content, workshop: Path
) -> Draft:
    document = target.into.resolve() if target.into else path
    away = Path(os.path.relpath(target.folder.resolve(), document.parent.resolve()))
    bodies = {}
    for part in parts:
        figures = [_moved(each, away) for each in figures_of(part.run, part.saved, workshop)]
        bodies[part.name] = content.text(part.run, figures, level=2 if target.into else 1)
    return _marked(document, bodies, append=target.into is not None, overwrite=target.overwrite)


def _without_links(part: Part, content: Content, workshop: Path, kinds: Sequence[str]) -> str:
    """Return a section that holds its figures, so that nothing but pictures is linked."""
    figures = figures_of(part.run, part.saved, workshop, kinds)
    return content.text(part.run, [replace(each, files=()) for each in figures])


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


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ExportRefused(
            f"{path}: cannot be read ({error.strerror}); nothing was written"
        ) from error


def _marked(
    path: Path, bodies: Mapping[str, str], *, append: bool = False, overwrite: bool = False
) -> Draft:
    """Return the draft of a Markdown text with marked regions; a refusal names the file."""
    before = _read(path)
    # What is no UTF-8 comes back as it was.
    text = "" if before is None else before.decode("utf-8", "surrogateescape")
    try:
        after = filled(text, bodies, append=append or before is None, overwrite=overwrite)
    except ExportRefused as error:
        raise ExportRefused(f"{path}: {error}") from None
    return Draft(path, before, after.encode("utf-8", "surrogateescape"))


def _whole(path: Path, content: bytes, overwrite: bool = False) -> Draft:
    """Return the draft of a document that is written whole: over nothing else, unless it may."""
    before = _read(path)
    if before not in (None, content) and not overwrite:
        raise ExportRefused(
            f"{path}: is not what would be written (another run, or an edit); move it away, or "
            "give --overwrite to lose it"
        )
    return Draft(path, before, content)


def _write(draft: Draft) -> None:
    """Put a draft in its place, whole or not at all; a file keeps its mode."""
    if draft.after == draft.before:
        return
    path = draft.path
    if _read(path) != draft.before:
        raise ExportRefused(f"{path}: was changed by somebody else meanwhile; export again")
    elsewhere = "give --to another folder"
    with explained(path, "the run is kept", elsewhere, ExportRefused):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            if draft.before is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(draft.after)
