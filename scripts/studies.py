"""Write what the reference found into the documents, between marks.

    python scripts/studies.py            # rewrite the tables and figures
    python scripts/studies.py --check    # say which differ; nothing is written

The tables are those of ``README.md`` and ``docs/studies/``. Every number in them comes from the
runs of ``data/reference/``, on any machine.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from perflab.figures import save_view
from perflab.figures.export import rendered
from perflab.paths import project_root, reference_dir
from perflab.recordings import Run, reference_runs
from perflab.recordings.reference import is_main
from perflab.reports.cells import to_markdown
from perflab.reports.figures import views_of
from perflab.reports.ledger import LEDGER_FILE, reference_table
from perflab.reports.regions import filled
from perflab.reports.runs import measured_where
from perflab.reports.verdicts import verdict_table
from perflab.statistics.in_words import MISSING

PAGES = {
    "chat": "chat", "inference": "inference", "llm": "llm-proxy", "metricstream": "metricstream",
    "registry": "registry",
}  # fmt: skip
COLUMNS = ("claim", "published", "measured [95%]", "n", "verdict")
# The figures that the documents show, as SVG; each with its table.
FIGURES = {
    "sync_vs_async": ("throughput",),
    "synchronous_commit": ("claimed_shares", "latency_rate"),
    "flush_map": ("flush_map",),
    "connection_lifecycle": ("life_cycle_parts",),
    "registry_downloads": ("waterfall",),
    "latency_cpu": ("delivery_cpu",),
    "chat_ladder": ("ladder",),
    "llm_streaming": ("stream_costs", "users_by_limit"),
}
REGION = "reference"
# README's rows, as the beginning of a claim.
HEADLINES = (
    "synchronous_commit=off raises throughput",
    "asyncpg gives about 1.5 times the throughput of psycopg2 (round trip 0 ms, pool minimum max",
    "serialize: json takes 8.82 times orjson",
    "logins cost 70 points of CPU",
    "100 threads shorten what 32 threads limit",
    "a thread per request raises success",
)
# Rows beyond what a study printed.
LEFT_OUT = "with the values made or read"


def claims_of(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the claims with a published value on which runs say something."""
    table = verdict_table(runs)
    said = (table["published"] != MISSING) & (table["measured [95%]"] != MISSING)
    return table[said & ~table["claim"].str.contains(LEFT_OUT)]


def body(runs: Sequence[Run], claims: pd.DataFrame) -> str:
    """Return a region: a table of claims, and where they were measured."""
    return f"{to_markdown(claims[[*COLUMNS]])}\n{measured_where(runs)}\n"


def ledger_path() -> Path:
    """Return the file of what the reference says of the published rows."""
    return reference_dir() / LEDGER_FILE


def texts(root: Path, runs: Sequence[Run]) -> Iterator[tuple[Path, str]]:
    """Yield every document that has a region, with its new text."""
    for system, page in PAGES.items():
        of_system = [run for run in runs if run.record.system == system]
        path = root / "docs" / "studies" / f"{page}.md"
        if of_system:
            table = body(of_system, claims_of(of_system))
            yield path, filled(path.read_text(), {REGION: table}, overwrite=True)
    claims = claims_of(runs)
    rows = [claims[claims["claim"].str.startswith(words)][:1] for words in HEADLINES]
    used = [run for run in runs if run.record.experiment in set(pd.concat(rows)["experiment"])]
    readme = root / "README.md"
    table = body(used, pd.concat(rows))
    yield readme, filled(readme.read_text(), {REGION: table}, overwrite=True)


def main(words: Sequence[str]) -> int:
    """Write or check all; return 1 where a check finds something else than the reference says."""
    root, runs = project_root(), reference_runs()
    differing = []
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
    drawn = set()
    # What the run with the defaults shows comes from it.
    for run in sorted(runs, key=is_main, reverse=True):
        folder = root / "figures" / "studies" / run.record.experiment
        for view in views_of(run):
            is_asked = view.name in FIGURES.get(run.record.experiment, ())
            if not is_asked or (folder, view.name) in drawn or view.shown(run).empty:
                continue
            drawn.add((folder, view.name))
            if not words:
                save_view(view, run, folder, ["svg"])
            for name, content in rendered(view, run, ["svg"]) if words else ():
                path = folder / name
                if not path.exists() or path.read_bytes() != content:
                    differing.append(path)
    for path in differing:
        print(f"{'differs' if words else 'written'}: {path.relative_to(root)}")
    return 1 if words and differing else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
