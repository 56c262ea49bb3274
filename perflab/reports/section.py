"""One run as a section of a design document, in Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path

import pandas as pd

from perflab.analysis.answers import answers_of
from perflab.analysis.evaluation import Finding
from perflab.analysis.noise import noise_flags, noise_report
from perflab.analysis.time_parts import change, change_sentence, decompose, largest_phase
from perflab.analysis.typical_values import measures, summary_table
from perflab.errors import AnalysisError
from perflab.figures.export import write_whole
from perflab.recordings import Run
from perflab.recordings.sharing import without_paths
from perflab.reports.cells import cell, to_markdown
from perflab.reports.duels import above_the_answer, are_variants, variants_answer
from perflab.reports.figures import save_all, views_of
from perflab.reports.findings import (
    ADJUSTED,
    answer_table,
    headings,
    measured_summary,
    readable_findings,
    readable_summary,
    reading_notes,
    sentences,
)
from perflab.reports.methods import (
    AT_THE_END,
    design,
    first_said,
    load,
    method,
    reproduce,
    set_up,
    where_and_when,
)
from perflab.statistics.in_words import MISSING, capitalized

# A page has room for so many treatments side by side.
MOST_ACROSS = 4
VERDICT = "## Verdict\n"
BRIEF = ("claim", "response", "published", "measured [95%]", "n", ADJUSTED, "verdict")
EFFECT, CPU_OF = "effect", "cpu_share_"
ON_A_PAGE = ("messages_per_s", "throughput_rps", "p50_ms", "p95_ms", "p99_ms")
# Parts of a stack whose CPU is not a service's.
NO_SERVICES = ("client", "lab", "link")
# What a page has room for.
MOST_ROWS, MOST_RESPONSES, MOST_WARNINGS = 8, 7, 3


@dataclass(frozen=True)
class Figure:
    """A figure of a document; ``image`` and ``files`` are links, relative to the document.

    ``n`` says how many trials it shows.
    """

    title: str
    n: str
    image: str
    files: tuple[str, ...] = ()


def figures_of(
    run: Run, saved: Sequence[Path], directory: Path, kinds: Sequence[str] = (".svg", ".png")
) -> list[Figure]:
    """Return the saved figures of a run, in the order in which they are shown.

    The ``saved`` files of one figure share a stem. Links are relative to the document's
    ``directory``. ``kinds`` are the suffixes of pictures that may be shown, best first.
    """
    titles = {view.name: view.title for view in views_of(run)}
    files: dict[str, dict[str, Path]] = {}
    for path in saved:
        files.setdefault(path.stem, {})[path.suffix] = path
    n, figures = run.n_text(), []
    for name, by_suffix in files.items():
        if shown := [by_suffix[kind] for kind in kinds if kind in by_suffix]:
            links = tuple(_link(path, directory) for path in by_suffix.values())
            figures.append(Figure(titles.get(name, name), n, _link(shown[0], directory), links))
    return figures


def _link(path: Path, directory: Path) -> str:
    return Path(os.path.relpath(path, directory)).as_posix()


def section_text(
    run: Run, findings: Sequence[Finding], figures: Sequence[Figure] = (), level: int = 1
) -> str:
    """Return the Markdown of ``run``: its question, its method and its results.

    First stands what a reader must know before any number: the run did not finish, or trials do not
    count. ``figures`` are of :func:`figures_of`. The section's heading has the ``level``, the
    headings within it are one deeper.
    """
    record, table = run.record, readable_findings(findings)
    parts = [
        f"# {cell(record.title)}\n",
        _first(run, AT_THE_END),
        f"**Question.** {cell(record.question)}\n",
        VERDICT,
        _bullets(sentences(run, findings)) or "No claim is attached to this run.\n",
        "## Method\n",
        f"{cell(method(run))}\n",
        "## Published and measured\n",
        to_markdown(brief(table)),
        _bullets(reading_notes(findings)),
        "## Measured\n",
        "\n".join(map(to_markdown, measured_tables(run))),
        "## Where the time goes\n",
        _bullets(bottlenecks(run)) or _no_bottleneck(run),
        _figures(figures),
        "## Set-up\n",
        set_up(run),
        "## Noise\n",
        to_markdown(noise_report(run)),
        "## Warnings\n",
        _bullets([*map(str, record.warnings), *run.problems]) or "There are none.\n",
        "## Trials that do not count\n",
        _not_counted(run),
        "## To repeat it\n",
        f"```sh\n{reproduce(record)}\n```\n",
    ]
    return without_paths(record, _joined(parts, level))


def page_text(
    run: Run, findings: Sequence[Finding], figures: Sequence[Figure] = (), level: int = 1
) -> str:
    """Return a run as one page of Markdown: what was found, what was done, why, and its limits.

    Its heading is the answer to the run's first question, or else the run's title.
    """
    record, answers = run.record, answers_of(run, findings)
    title = (variants_answer(run, findings) if are_variants(run) else "") or record.title
    if answers:
        title = f"{capitalized(answers[0].question)} {capitalized(answers[0].text)}"
    why, limits = next(_changes(run), ""), _limits(run)
    parts = [
        f"# {cell(title)}\n",
        _first(run, f"`perflab show {run.run_id}` has the reasons"),
        _bullets(above_the_answer(run)),
        _bullets(_answer_lines(findings)) or "No claim is attached to this run.\n",
        f"**What was done.** {cell(f'{design(run)} {load(record)}')} {cell(where_and_when(run))}\n",
        to_markdown(page_table(run)) if len(record.treatments) <= MOST_ROWS else "",
        _figures(figures, heading=""),
        f"**Why.** {cell(why)}\n" if why else "",
        f"**Limits.** {cell(limits)}\n" if limits else "",
        f"**To repeat it.**\n\n```sh\n{reproduce(record)}\n```\n",
        f"Every claim, table and figure: `perflab export {run.run_id} --full --to DIR`\n",
    ]
    return without_paths(record, _joined(parts, level))


def _answer_lines(findings: Sequence[Finding]) -> Iterator[str]:
    for claim, here, study in answer_table(findings).itertuples(index=False):
        beside = f" (study: {study})" if study else ""
        yield f"**{claim}**: {here}{beside}" if here else claim


def page_views(run: Run) -> tuple[str, ...]:
    """Return the name of the view that a page shows: the effects, or else the first view."""
    names = [view.name for view in views_of(run)]
    return (EFFECT,) if EFFECT in names else tuple(names[:1])


def page_table(run: Run) -> pd.DataFrame:
    """Return a row of text per treatment: its valid trials, and the responses of a page.

    These are the responses that its claims are about, and as many of :data:`ON_A_PAGE` and the CPU
    of its services as there is room for.
    """
    claimed, table = {contrast.response for contrast in run.record.contrasts}, readable_summary(run)
    known = {
        name: heading
        for name, heading in headings(run).items()
        if (table[heading] != MISSING).any()
        and (name in claimed or name in ON_A_PAGE or _is_cpu_of_a_service(name))
    }
    others = [name for name in known if name not in claimed]
    room = max(0, MOST_RESPONSES - (len(known) - len(others)))
    shown = [known[name] for name in known if name in claimed or name in others[:room]]
    counts = summary_table(run)[["valid", "invalid", "failed"]]
    valid = [f"{int(row['valid'])} of {int(row.sum())}" for _, row in counts.iterrows()]
    return table.assign(valid=valid)[["treatment", "valid", *shown]]


def _is_cpu_of_a_service(response: str) -> bool:
    return response.startswith(CPU_OF) and response.removeprefix(CPU_OF) not in NO_SERVICES


def _limits(run: Run) -> str:
    """Return what narrows the result: shared cores, noise, and warnings."""
    warnings = [warning.text.rstrip(".") for warning in run.record.warnings[:MOST_WARNINGS]]
    text = "; ".join(filter(None, [run.record.shared_cores, *noise_flags(run), *warnings]))
    return f"{capitalized(text)}." if text else ""


def write_report(run: Run, findings: Sequence[Finding], directory: Path) -> list[Path]:
    """Write the figures of a run and its section; return their paths, the section's last."""
    saved = save_all(run, directory, findings=findings)
    return [*saved, write_section(run, findings, directory, saved)]


def write_section(
    run: Run, findings: Sequence[Finding], directory: Path, saved: Sequence[Path]
) -> Path:
    """Write the section of a run as ``<directory>/<run id>.md``; return its path.

    Links to the ``saved`` figures are relative, so that the folder can be moved or committed as a
    whole.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = _place(run, directory)
    figures = figures_of(run, saved, directory)
    write_whole(path, section_text(run, findings, figures).encode())
    return path


def _place(run: Run, directory: Path) -> Path:
    return directory / f"{run.run_id}.md"


def saved_answer(run: Run, directory: Path) -> str:
    """Return the first sentence of the verdict in a saved section; nothing where there is none.

    To judge a run again takes seconds.
    """
    try:
        text = _place(run, directory).read_text(encoding="utf-8")
    except OSError:
        return ""
    return text.partition(f"\n{VERDICT}\n- ")[2].partition("\n")[0]


def _first(run: Run, reasons: str) -> str:
    """Return what a reader must know first, as a quote; see :func:`first_said` for ``reasons``."""
    lines = [f"> **{cell(line)}**\n>\n" for line in first_said(run, reasons)]
    return "".join(lines).removesuffix(">\n")


def _joined(parts: Iterable[str], level: int) -> str:
    """Join the parts of a section whose heading has a level."""
    deeper = "#" * (level - 1)
    return "\n".join(deeper + part if part.startswith("#") else part for part in parts if part)


def brief(findings: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a table of findings that fit a page; sentences tell the others.

    The column "left out" is among them where it holds a reason.
    """
    return findings[[*BRIEF, *(["left out"] if (findings["left out"] != MISSING).any() else [])]]


def measured_tables(run: Run) -> list[pd.DataFrame]:
    """Return what each treatment did, in tables of a few treatments side by side."""
    across = measured_summary(readable_summary(run)).set_index("treatment").T
    across.index.name = "typical [95%]"
    groups = range(0, across.shape[1], MOST_ACROSS)
    return [across.iloc[:, n : n + MOST_ACROSS].reset_index() for n in groups]


def bottlenecks(run: Run) -> list[str]:
    """Return sentences on where the time of each treatment goes, and on what changes between two.

    First a sentence for each treatment on the largest part of its response time, then one for each
    pair of treatments that a claim compares on the part that changes most. The list is empty for a
    run without response times, or without its rows of requests.
    """
    if not measures(run, "mean_ms") or "requests" in run.missing:
        return []
    requests = run.requests()
    table = decompose(requests)
    labels = run.record.labels
    with_parts = set(table["treatment"])
    texts = [largest_phase(table, name, labels[name]) for name in labels if name in with_parts]
    return [*texts, *_changes(run)]


def _changes(run: Run) -> Iterator[str]:
    """Yield a sentence per pair of treatments that a claim compares, on the part that changes."""
    if not measures(run, "mean_ms") or "requests" in run.missing:
        return
    labels = run.record.labels
    for after, before in run.record.compared_pairs():
        try:
            changes = change(run.requests(), before, after)
        except AnalysisError:
            continue
        yield capitalized(change_sentence(changes, labels[before], labels[after]))


def _no_bottleneck(run: Run) -> str:
    if run.missing:
        return f"This recording lacks the rows of {' and '.join(run.missing)}.\n"
    trials = run.trials()
    measured = trials[trials["state"] != "failed"]
    if ((measured["requests"] == 0) | (measured["requests"] > measured["errors"])).any():
        return "This run does not measure requests; a profile tells where the time goes.\n"
    return "No request succeeded.\n"


def _figures(figures: Sequence[Figure], heading: str = "## Figures\n\n") -> str:
    if not figures:
        return ""
    return heading + "\n".join(starmap(_figure, enumerate(figures, start=1)))


def _figure(number: int, figure: Figure) -> str:
    """Return a picture with its alternative text, its caption and links to its files."""
    alternative = cell(figure.title).replace("[", "\\[").replace("]", "\\]")
    caption = cell(f"{capitalized(figure.title)}. {figure.n}.").replace("*", "∗")
    words = {".svg": "SVG", ".png": "PNG", ".csv": "table", ".txt": "call chains for speedscope"}
    links = [f"[{words[Path(link).suffix]}](<{link}>)" for link in figure.files]
    files = f" ({', '.join(links)})" if links else ""
    return f"![{alternative}](<{figure.image}>)\n\n*Figure {number}. {caption}*{files}\n"


def told_states(trials: pd.DataFrame) -> pd.Series[str]:
    """Return the states of trials, which also say which ones were measured anew."""
    counts = ~trials["superseded"].astype(bool)
    return trials["state"].where(counts, trials["state"] + ", superseded")


def _not_counted(run: Run) -> str:
    """Return the table of trials that are not valid, or were measured anew."""
    trials = run.trials()
    if not len(trials):
        return "The run has no trial.\n"
    states = told_states(trials)
    listed = trials[states != "valid"]
    if not len(listed):
        return "Every trial is valid.\n"
    columns = {
        "trial": listed["trial_id"],
        "treatment": listed["treatment"],
        "state": states[listed.index],
        "reason": ["; ".join(map(str, reasons)) for reasons in listed["reasons"]],
    }
    return to_markdown(pd.DataFrame(columns))


def _bullets(lines: Iterable[str]) -> str:
    return "".join(f"- {cell(str(line))}\n" for line in lines)
