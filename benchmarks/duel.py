"""How often a duel finds a planted slow-down, and how often it finds none, by its design.

A repository is made with two revisions of a small service: the second spins 5% longer for every
request. It is held against the first (``planted``), and the first against itself (``A/A``), N times
each, by every design in turn, in random order. Printed are the shares, with exact 95% intervals, of
duels that called a planted response different, and of copies that they called the same (no
difference larger than 3%) and different; how wide their intervals were, and what ratio they found.

A planted 5% lies above the margin of 3%: of A/A "different" is a false alarm. Designs are compared
at equal time, which is in the table: choose the seconds of a trial so that duels take as long,
``--designs trials=1 slices=0.5``. Take an idle machine, and 20 of each.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import bench
from perflab import api
from perflab.analysis.evaluation import evaluate
from perflab.statistics.two_samples import Rate

SERVER = """
import argparse, hashlib
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        digest = b"x"
        for _ in range(ROUNDS):
            digest = hashlib.sha256(digest).digest()
        self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")

    def log_message(self, *_):
        pass

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
HTTPServer(("127.0.0.1", parser.parse_args().port), Handler).serve_forever()
"""
PLANTED = 1.05
KINDS = {"planted": "slow", "A/A": "fast"}
DIFFERENT, SAME = "different", "equivalent"
RESPONSES = ("mean_ms", "service_cpu_us_per_request")


def repository(folder: Path, rounds: int) -> None:
    """Make a repository whose revision ``slow`` works 5% longer than ``fast``."""
    author = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@example.com"]
    git = ["git", "-C", str(folder), *author]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for name, own in (("fast", rounds), ("slow", round(rounds * PLANTED))):
        (folder / "server.py").write_text(SERVER.replace("ROUNDS", str(own)))
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", name], check=True)
        subprocess.run([*git, "tag", name], check=True)


def duel(
    folder: Path, kind: str, design: str, given: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Carry out one duel against ``fast``; yield what was said of each response."""
    parameters = {
        "variants": ["old=git:.@fast", f"new=git:.@{KINDS[kind]}"], "folder": str(folder),
        "command": "python3 server.py --port {port}", "users": 1, "blocks": given.blocks,
        "duration_s": seconds_of(given.designs)[design], "warmup_s": given.warmup,
        "design": design, "wait_s": 600,
    }  # fmt: skip
    if design != "trials":
        parameters["slice_ms"] = given.slice_ms
    began = time.monotonic()
    run = api.run("custom_service", parameters)
    took_s = time.monotonic() - began
    for found in evaluate(run):
        if found.contrast.response in RESPONSES:
            effect = found.effect
            yield {
                "design": design, "kind": kind, "response": found.contrast.response,
                "said": str(found.decision.kind) if found.decision else "not compared",
                "log": math.log(effect.estimate) if effect else math.nan,
                "half": math.log(effect.high / effect.low) / 2 if effect else math.nan,
                "took_s": took_s,
            }  # fmt: skip


def summary(rows: pd.DataFrame) -> list[dict[str, str]]:
    """Return a row per design and response; half widths are geometric means."""
    found = []
    for (response, design), own in rows.groupby(["response", "design"], sort=False):
        planted, copies = (own[own["kind"] == kind] for kind in KINDS)
        ratios = planted["log"].dropna().map(math.exp)
        found.append(
            {
                "response": response,
                "design": design,
                "s a duel": f"{own['took_s'].mean():.1f}",
                "planted different": _share(planted, DIFFERENT),
                "planted same": _share(planted, SAME),
                "A/A same": _share(copies, SAME),
                "A/A different": _share(copies, DIFFERENT),
                "half width": f"{math.exp(own['half'].map(math.log).mean()):.1%}",
                "planted ratio": f"{ratios.mean():.3f} ({ratios.min():.3f} to {ratios.max():.3f})",
            }
        )
    return sorted(found, key=lambda row: (row["response"], row["design"]))


def _share(own: pd.DataFrame, said: str) -> str:
    return Rate(int((own["said"] == said).sum()), len(own)).text()


def seconds_of(words: list[str]) -> dict[str, float]:
    """Return the seconds of a trial by design, from words such as ``slices=0.5``."""
    parted = (word.partition("=") for word in words)
    return {name: float(seconds or 0.7) for name, _, seconds in parted}


def main() -> None:
    """Carry out every duel, designs and kinds in random order, and print the table."""
    given = bench.options(
        __doc__,
        times=(20, "duels of each kind and design"),
        blocks=8,
        designs=(["trials=1.55", "slices=0.7"], "seconds of a trial by design"),
        warmup=0.5,
        slice_ms=50.0,
        work=(4000, "rounds of SHA-256 for a request"),
        out=("", "a CSV file for every duel"),
    )
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        repository(Path(place), given.work)
        cells = list(product(seconds_of(given.designs), KINDS))
        for design, kind in bench.turns(cells, given.times):
            rows += duel(Path(place), kind, design, given)
    table = pd.DataFrame(rows)
    if given.out:
        table.to_csv(given.out, index=False)
    bench.show(summary(table))


if __name__ == "__main__":
    main()
