"""Write what the reference found into the documents, between marks.

    python scripts/studies.py            # rewrite the tables and figures
    python scripts/studies.py --check    # say which differ; nothing is written

The tables are those of ``README.md`` and ``docs/studies/``. Every number in them comes from the
runs of ``data/reference/``, on any machine. The sentences of ``docs/studies/`` are checked, too
(``sentences.py``).
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from sentences import faults

from perflab.analysis.answers import NOT_DECIDED, YES
from perflab.analysis.evaluation import Finding
from perflab.analysis.noise import doubt
from perflab.analysis.results import AgainstStudy
from perflab.figures import save_view
from perflab.figures.export import rendered
from perflab.paths import project_root, reference_dir
from perflab.recordings import Run, open_run, reference_runs
from perflab.recordings.reference import is_main
from perflab.reports.cells import count, to_markdown
from perflab.reports.figures import views_of
from perflab.reports.findings import claim_answers
from perflab.reports.ledger import LEDGER_FILE, reference_table
from perflab.reports.ledger.answering_runs import planned_today, question_key
from perflab.reports.regions import filled
from perflab.reports.rules import findings_of
from perflab.reports.runs import measured_where
from perflab.statistics.mean_intervals import SMALLEST_N

PAGES = {
    "chat": "chat", "inference": "inference", "llm": "llm-proxy", "metricstream": "metricstream",
    "registry": "registry",
}  # fmt: skip
COLUMNS = ("claim", "study", "here [95%]", "n", "run")
# What stands for the study where no size of it is compared: its size is of another measure or load,
# or it gives none.
DIRECTION, NO_EFFECT = "direction only", "no effect"
NOT_TESTABLE = AgainstStudy.NOT_TESTABLE.value
# The figures that the documents show, as SVG, by their run; each with its table.
FIGURES = {
    "reference:sync_vs_async": ("throughput",),
    "reference:synchronous_commit": ("effect",),
    "42ea3d": ("latency_rate",),
    "reference:flush_map": ("flush_map",),
    "reference:connection_lifecycle": ("life_cycle_parts",),
    "04b6da": ("effect",),
    "reference:registry_downloads": ("waterfall",),
    "reference:latency_cpu": ("delivery_cpu",),
    "6875e3": ("ladder",),
    "20604e": ("pings",),
    "reference:serialization": ("codec_cost",),
    "reference:llm_streaming": ("stream_costs",),
    "ba8c93": ("users_by_limit",),
}
REGION = "reference"
# README's rows, as the beginning of a claim.
HEADLINES = (
    "synchronous_commit=off raises throughput",
    "asyncpg gives about 1.5 times the throughput of psycopg2 (round trip 0 ms, pool minimum max",
    "serialize: json takes 8.82 times orjson",
    "logins cost CPU",
    "100 threads shorten what 32 threads limit",
    "keeping connections alive multiplies throughput",
)
# Rows that pages leave to `perflab claims`: beyond what a study printed, and others like one shown.
LEFT_OUT = re.compile(
    r"with the values made|seen in the mean|requests at failure|\((?:batch|tools)\)|of pings|"
    r"(?:fastest|median|slowest) \(a bound|of what is sent|second core|volume grows|profiling at|"
    r"(?:300|325|350|375|400|425) users|protobuf instead|logins, lowers|under way \(|"
    r"mutex per client|difference to the mean|CPU \(pool\)|(?:8.9|7.65) times|saves CPU$|"
    r"less CPU(?! seems)|uvloop saves|off saves|"
    r"once permessage|\(epoll\)$|"
    r"flush(?: of .* ms)?, \d+ worker|, 1 worker\)|1 s faster \((?:128|256) "
)
# The column n says it.
BLOCKS = re.compile(r" in \d+(?: to \d+)? blocks?")
LIMIT = re.compile(r" \(limit: [^)]*\)")

Ends = tuple[float, float]
# Question, what stands for the study, what was found, n, and the ends of the first interval.
Claim = tuple[str, str, str, str, Ends]


def claims_of(run: Run) -> Iterator[Claim]:
    """Yield a row of text for each published claim on which a run has enough blocks for an answer.

    A run of fewer blocks is a picture.
    """
    for answer in claim_answers(worded_today(run, findings_of(run))):
        n = sorted({finding.effect.n for finding in answer.findings if finding.effect})
        if answer.study and n and n[-1] >= SMALLEST_N and not LEFT_OUT.search(answer.question):
            claimed = {finding.contrast.published_direction for finding in answer.findings}
            unsized = NO_EFFECT if claimed == {"none"} else DIRECTION
            study = unsized if answer.study == YES else answer.study
            here = BLOCKS.sub("", answer.text)
            yield answer.question, study, here, ", ".join(map(count, n)), _ends(answer.findings)


def worded_today(run: Run, findings: Sequence[Finding]) -> list[Finding]:
    """Return a run's findings, with the words that its experiment has for the same claims today."""
    plan = planned_today(run)
    words = {question_key(each): each.claim for each in plan.contrasts} if plan else {}
    return [
        replace(one, contrast=one.contrast.model_copy(update={"claim": claim}))
        if (claim := words.get(question_key(one.contrast)))
        else one
        for one in findings
    ]


def _ends(findings: Sequence[Finding]) -> Ends:
    """Return the ends of the first interval; of a bound, twice its end."""
    effect = next(finding.effect for finding in findings if finding.effect)
    if effect.bound:
        end = effect.low if effect.bound == "at least" else effect.high
        return end, end
    return effect.low, effect.high


def body(claims: Sequence[tuple[Run, Claim]]) -> str:
    """Return a region: a table of claims, and where they were measured.

    An experiment has a row for each claim and what stands for the study. A run that compares no
    size is left out where another decides with one. Numbers are those of the first run with an
    answer; later ones with the same answer are only named.
    """
    told: dict[tuple[str, str], list[tuple[str, Claim]]] = {}
    runs = {run.run_id: run for run, _ in claims}
    doubts = {name: why for name, run in runs.items() if (why := doubt(run))}
    for run, claim in claims:
        name = run.run_id.rpartition("-")[2] + " (doubtful)" * (run.run_id in doubts)
        told.setdefault((run.record.experiment, claim[0]), []).append((name, claim))
    rows = []
    for (experiment, question), found in told.items():
        sizes = dict.fromkeys(claim[1] for _, claim in found)
        decided = {claim[1] for _, claim in found if _word(claim[2]) != NOT_DECIDED}
        if decided - {DIRECTION}:
            sizes.pop(DIRECTION, None)
        for study in sizes:
            here, n, names = _of_runs([item for item in found if item[1][1] == study])
            rows.append((question, study, here, n, f"{experiment} {names}"))
    table = to_markdown(pd.DataFrame(rows, columns=list(COLUMNS)))
    notes = [measured_where([*runs.values()])]
    notes += [f"Doubtful, {name.rpartition('-')[2]}: {why}." for name, why in doubts.items()]
    return "\n".join([table, *notes, ""])


def _word(answer: str) -> str:
    return answer.partition(":")[0]


def _numbers(answer: str) -> str:
    """Return an answer without its word, which an answer before it has."""
    return answer.partition(": ")[2]


def _of_runs(found: Sequence[tuple[str, Claim]]) -> tuple[str, str, str]:
    """Return what runs answer to a claim, with n, and their names; what decides stands first.

    Of runs with one answer the first speaks, and those whose interval does not touch its own. Of
    several answers each says whose it is.
    """
    by_answer: dict[str, list[tuple[str, Claim]]] = {}
    for name, claim in found:
        by_answer.setdefault(_word(claim[2]), []).append((name, claim))
    # A load that sets an answer says nothing beside one that does not.
    tested = {word: of for word, of in by_answer.items() if not word.startswith(NOT_TESTABLE)}
    by_answer = tested or by_answer
    order = sorted(by_answer, key=lambda answer: answer == NOT_DECIDED)
    texts, names = [], []
    for answer in order:
        (_, (*_, text, _, ends)), *others = by_answer[answer]
        those = ", ".join(name for name, _ in by_answer[answer])
        undecided = answer == NOT_DECIDED and len(order) > 1
        whose = f" in {those}" if answer != order[0] else ""
        apart = [
            f"{_numbers(claim[2])} in {name}"
            for name, claim in others
            # Of answers about a limit the word is all.
            if _apart(ends, claim[4]) and not LIMIT.search(text)
        ]
        texts += [f"{answer}{whose}"] if undecided else [text + whose, *apart]
        names.append(those)
    return "; ".join(texts), by_answer[order[0]][0][1][3], ", ".join(names)


def _apart(one: Ends, other: Ends) -> bool:
    """Return whether two intervals do not touch each other."""
    return one[1] < other[0] or other[1] < one[0]


def drawn_words(folder: Path, runs: Sequence[Run]) -> list[str]:
    """Return what the figures of the runs' experiments say in words, by their tables."""
    names = {run.record.experiment for run in runs}
    files = [file for name in names for file in (folder / name).glob("*.csv")]
    rows = [row for file in files for row in csv.DictReader(file.read_text().splitlines())]
    return [row["words"] for row in rows if row.get("words")]


def ledger_path() -> Path:
    """Return the file of what the reference says of the published rows."""
    return reference_dir() / LEDGER_FILE


def texts(root: Path, runs: Sequence[Run]) -> Iterator[tuple[Path, str]]:
    """Yield every document that has a region, with its new text."""
    claims = [(run, claim) for run in runs for claim in claims_of(run)]
    for system, page in PAGES.items():
        path = root / "docs" / "studies" / f"{page}.md"
        table = body([(run, claim) for run, claim in claims if run.record.system == system])
        yield path, filled(path.read_text(), {REGION: table}, overwrite=True)
    rows = [next(row for row in claims if row[1][0].startswith(words)) for words in HEADLINES]
    readme = root / "README.md"
    yield readme, filled(readme.read_text(), {REGION: body(rows)}, overwrite=True)


def main(words: Sequence[str]) -> int:
    """Write or check all; return 1 where a check fails, or a sentence has a wrong number."""
    # The run that stands for its experiment speaks first.
    root, runs = project_root(), sorted(reference_runs(), key=is_main, reverse=True)
    differing, wrong = [], []
    table, path = reference_table().to_csv(index=False, lineterminator="\n"), ledger_path()
    if not path.exists() or table != path.read_text():
        differing.append(path)
        if not words:
            path.write_text(table)
    for path, text in texts(root, runs):
        if text != path.read_text():
            differing.append(path)
            if not words:
                path.write_text(text)
        of_page = [run for run in runs if PAGES.get(run.record.system) == path.stem]
        drawn = drawn_words(root / "figures" / "studies", of_page)
        found = faults(text, path.stem.replace("-", "_"), of_page, drawn) if of_page else []
        wrong += [f"{path.relative_to(root)}: {fault}" for fault in found]
    for name, shown in FIGURES.items():
        run = open_run(name, reference_dir())
        folder = root / "figures" / "studies" / run.record.experiment
        views = {view.name: view for view in views_of(run)}
        for view in (views[asked] for asked in shown):
            if not words:
                save_view(view, run, folder, ["svg"])
            for file, content in rendered(view, run, ["svg"]) if words else ():
                path = folder / file
                if not path.exists() or path.read_bytes() != content:
                    differing.append(path)
    for path in differing:
        print(f"{'differs' if words else 'written'}: {path.relative_to(root)}")
    print("\n".join(wrong), end="\n" * bool(wrong))
    return 1 if wrong or (words and differing) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
