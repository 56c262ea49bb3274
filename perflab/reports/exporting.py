"""Exports runs as sections of documents."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path

from perflab.analysis.evaluation import Finding
from perflab.errors import ExportRefused, ParameterError, PerflabError
from perflab.figures.export import NO_TABLE, stamped
from perflab.host.files import explained, whole_file
from perflab.parameters import unknown
from perflab.paths import runs_dir
from perflab.recordings import Run, open_run
from perflab.reports import conversion
from perflab.reports.figures import save_all, views_of
from perflab.reports.regions import NAME, filled, regions
from perflab.reports.rules import findings_of
from perflab.reports.section import Figure, figures_of, page_text, page_views, section_text

FORMATS = ("md", "html", "pdf", "docx")
NEED_PROGRAMS = ("pdf", "docx")
MARKDOWN = (".md", ".markdown")
NAME_OF_SEVERAL = "report"
RUN_ID = re.compile(r"\b\d{8}T\d{6}Z-[a-z0-9_]+-[0-9a-f]{6}\b")
COMMIT = re.compile("@[0-9a-f]{40}")
REPLACED = (
    "run {run} takes the place of {before}, which has the same parameters; to keep both, name both "
    "in one export"
)
# Two runs that differ in these alone ask the same question.
OF_THE_RUN = ("blocks", "why", "seed", "backend", "from_run", "resume", "wait_s")


@dataclass(frozen=True)
class Draft:
    """The content of a file before the export (None: it did not exist) and after it."""

    path: Path
    before: bytes | None
    after: bytes


@dataclass(frozen=True)
class Destination:
    """Where an export goes: figures to ``folder``, Markdown to ``into`` if that is named.

    A section that has no marks there yet goes to the end of the document.
    """

    folder: Path
    into: Path | None = None
    overwrite: bool = False


@dataclass(frozen=True)
class Content:
    """The contents of a section: one page, or all there is if ``full``.

    Without ``views`` a page has one figure, and a full section has all.
    """

    views: tuple[str, ...] = ()
    full: bool = False

    def text(self, part: ExportedRun, figures: Sequence[Figure], level: int = 1) -> str:
        """Return a section in Markdown."""
        text_of = section_text if self.full else page_text
        return text_of(part.run, part.findings, figures, level)

    def shown(self, run: Run) -> tuple[str, ...]:
        """Return the names of the views that are drawn; none stands for all."""
        return self.views or (() if self.full else page_views(run))


PAGE = Content()


@dataclass(frozen=True)
class ExportedRun:
    """A run in a document: the name of its region, its findings, and its saved figures."""

    name: str
    run: Run
    findings: Sequence[Finding]
    saved: tuple[Path, ...]


def export_runs(
    runs: Sequence[Run],
    target: Destination,
    formats: Sequence[str],
    content: Content = PAGE,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Write the documents of runs; return their paths and those of figures and tables.

    ``tell`` gets a sentence for each run that takes the place of another in a document.
    ParameterError where a format or view is not known, or the options contradict each other.
    ExportRefused where a file cannot be written as asked; nothing was written.
    """
    _check(runs, target, formats, content)
    conversion.check_installed([kind for kind in NEED_PROGRAMS if kind in formats])
    there = _regions_at(runs, target) if "md" in formats else {}
    names = _region_names(runs, there)
    with tempfile.TemporaryDirectory(prefix="perflab-export-") as name:
        workshop = Path(name)
        parts = [
            _exported(region, run, workshop / region, content)
            for region, run in zip(names, runs, strict=True)
        ]
        documents = [
            _document(kind, parts, target, content, workshop) for kind in FORMATS if kind in formats
        ]
        # Only Markdown links figures as files: the other formats contain them.
        files = [
            (target.folder / path.relative_to(workshop), path.read_bytes())
            for part in parts
            for path in part.saved
            if "md" in formats or path.suffix == ".csv"
        ]
    # Figures are written first, so that no text links a missing file.
    drafts = [*(Draft(path, _read(path), content) for path, content in files), *documents]
    for draft in drafts:
        _write(draft)
    for name, run in zip(names, runs, strict=True):
        if (before := _run_in(there.get(name, ""))) not in ("", run.run_id):
            tell(REPLACED.format(run=run.run_id, before=before))
    return [draft.path for draft in drafts]


def _exported(region: str, run: Run, folder: Path, content: Content) -> ExportedRun:
    """Judge a run and save its figures."""
    findings = findings_of(run)
    saved = save_all(run, folder, content.shown(run), findings)
    return ExportedRun(region, run, findings, tuple(saved))


def _regions_at(runs: Sequence[Run], target: Destination) -> dict[str, str]:
    """Return the bodies of the regions that the document has already, by name."""
    document = target.into or _path_of("md", runs, target)
    text = _text(document, _read(document) or b"")
    try:
        return {region.name: region.body for region in regions(text)}
    except ExportRefused as error:
        raise ExportRefused(f"{document}: {error}") from None


def _region_names(runs: Sequence[Run], there: Mapping[str, str]) -> list[str]:
    """Return a region name per run: its experiment, and a number where that is taken.

    It is taken by an earlier run, and by one in the document that has other parameters: only a new
    run of the same question replaces the old one. A run that is there keeps its region.
    """
    own = {_run_in(body): name for name, body in there.items()}
    names: list[str] = []
    for run in runs:
        experiment = run.record.experiment
        if not NAME.fullmatch(experiment):
            raise ExportRefused(
                f"run {run.run_id}: the name of its experiment, {experiment!r:.80}, cannot name a "
                "file"
            )
        if (kept := own.get(run.run_id)) and kept not in names:
            names.append(kept)
            continue
        numbered = chain([experiment], (f"{experiment}-{number}" for number in count(2)))
        names.append(
            next(
                name
                for name in numbered
                if name not in names and _asks_the_same(run, there.get(name, ""))
            )
        )
    return names


def _asks_the_same(run: Run, body: str) -> bool:
    """Return whether a region is of a run with the same parameters, at whatever commits.

    So it is taken to be if its run is not on this machine.
    """
    name = _run_in(body)
    if not name:
        return True
    try:
        other = open_run(name, runs_dir())
    except PerflabError:
        return True
    return _question(run) == _question(other)


def _run_in(body: str) -> str:
    """Return the id of the run that a region is of; empty where it names none."""
    found = RUN_ID.search(body)
    return found[0] if found else ""


def _question(run: Run) -> dict[str, str]:
    return {
        name: COMMIT.sub("", str(value))
        for name, value in run.record.parameters.items()
        if name not in OF_THE_RUN
    }


def _check(
    runs: Sequence[Run], target: Destination, formats: Sequence[str], content: Content
) -> None:
    problems = unknown("format", formats, FORMATS)
    ids = [run.run_id for run in runs]
    problems += [f"run {name} is named twice" for name in dict.fromkeys(ids) if ids.count(name) > 1]
    problems += [] if runs else ["name a run; 'perflab runs' lists them"]
    known = [view.name for run in runs for view in views_of(run)] if content.views else []
    problems += unknown("view", content.views, known)
    problems += [] if formats else [f"name a format: {', '.join(FORMATS)}"]
    if target.into and set(formats) != {"md"}:
        problems.append("--into takes Markdown alone; export other formats by themselves")
    if target.into and target.into.suffix.lower() not in MARKDOWN:
        problems.append(
            f"--into {target.into} is no Markdown (FILE.md, FILE.markdown); for another format: "
            "--to DIR --format docx (or pdf, html)"
        )
    if problems:
        raise ParameterError("perflab export", problems)


def _path_of(kind: str, runs: Sequence[Run], target: Destination) -> Path:
    names = list(dict.fromkeys(run.record.experiment for run in runs))
    return target.folder / f"{names[0] if len(names) == 1 else NAME_OF_SEVERAL}.{kind}"


def _document(
    kind: str, parts: Sequence[ExportedRun], target: Destination, content: Content, workshop: Path
) -> Draft:
    """Return the draft of a document in one format; the figures lie in ``workshop``.

    Other content in its place is not replaced unasked.
    """
    if kind == "md":
        return _markdown(parts, target, content, workshop)
    title = "; ".join(dict.fromkeys(part.run.record.title for part in parts))
    # Word cannot show SVG.
    kinds = (".png",) if kind == "docx" else (".svg", ".png")
    texts = []
    for part in parts:
        figures = figures_of(part.run, part.saved, workshop, kinds)
        # The document contains its figures, so it links no file.
        texts.append(content.text(part, [replace(figure, files=()) for figure in figures]))
    if kind == "html":
        pictures = [_pictures(part, workshop) for part in parts]
        document = conversion.page(title, zip(texts, pictures, strict=True)).encode()
    elif kind == "docx":
        document = conversion.docx("\n\n".join(texts), workshop)
    else:
        document = conversion.pdf("\n\n".join(texts), workshop, title)
    if kind != "docx":
        document = stamped(document, kind, NO_TABLE)
    path = _path_of(kind, [part.run for part in parts], target)
    before = _read(path)
    if before not in (None, document) and not target.overwrite:
        raise ExportRefused(
            f"{path}: is not what would be written (another run, or an edit); move it away, or "
            "give --overwrite to lose it"
        )
    return Draft(path, before, document)


def _markdown(
    parts: Sequence[ExportedRun], target: Destination, content: Content, workshop: Path
) -> Draft:
    """Return the draft of a Markdown text with marked regions; a refusal names the file."""
    runs = [part.run for part in parts]
    document = target.into.resolve() if target.into else _path_of("md", runs, target)
    bodies = {}
    for part in parts:
        # The figures go from the workshop to the target.
        saved = [target.folder.resolve() / file.relative_to(workshop) for file in part.saved]
        figures = figures_of(part.run, saved, document.parent.resolve())
        bodies[part.name] = content.text(part, figures, level=2 if target.into else 1)
    before = _read(document)
    try:
        after = filled(_text(document, before or b""), bodies, overwrite=target.overwrite)
    except ExportRefused as error:
        raise ExportRefused(f"{document}: {error}") from None
    return Draft(document, before, after.encode("utf-8", "surrogateescape"))


def _pictures(part: ExportedRun, workshop: Path) -> Mapping[str, bytes]:
    return {
        path.relative_to(workshop).as_posix(): path.read_bytes()
        for path in part.saved
        if path.suffix in (".svg", ".png")
    }


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ExportRefused(
            f"{path}: cannot be read ({error.strerror}); nothing was written"
        ) from error


def _text(path: Path, content: bytes) -> str:
    """Return the text of a Markdown file; ExportRefused where it is none in UTF-8."""
    with suppress(UnicodeDecodeError):
        text = content.decode()
        # Binary files may be UTF-8 by chance; text has no zeros.
        if "\0" not in text:
            return text
    raise ExportRefused(
        f"{path}: is no text in UTF-8; save it as such, or name another file; nothing was written"
    )


def _write(draft: Draft) -> None:
    """Write a draft, whole or not at all; an existing file keeps its mode."""
    if draft.after == draft.before:
        return
    path = draft.path
    if _read(path) != draft.before:
        raise ExportRefused(f"{path}: was changed by somebody else meanwhile; export again")
    with explained(path, "the run is kept", "give --to another folder", ExportRefused):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            if draft.before is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(draft.after)
