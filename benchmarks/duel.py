"""How often a duel of two git revisions finds a planted slow-down, and how often it finds none.

A repository is made with two revisions of a small service: the second spins 5% longer for every
request. It is held against the first (``planted``), and the first against itself (``A/A``), N times
each. Printed are shares with their exact 95% intervals: of duels that called the mean response time
different, the same (no difference larger than 3%), undecided, or could not compare it.

A planted 5% lies above the margin of 3%: of A/A "different" is a false alarm, of planted "the same"
is. Take an idle machine, and 20 of each: ``python benchmarks/duel.py --times 20``.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from perflab import laboratory
from perflab.analysis.methods.rates import Rate
from perflab.analysis.treatments.evaluation import evaluate

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
OUTCOMES = ("different", "equivalent", "undecided", "not compared")
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


def outcomes(folder: Path, new: str, given: argparse.Namespace) -> dict[str, str]:
    """Carry out one duel against ``fast``; return what was said of each response."""
    run = laboratory.run(
        "own_service",
        {
            "variants": ["old=git:.@fast", f"new=git:.@{new}"], "folder": str(folder),
            "command": "python3 server.py --port {port}", "users": 1, "blocks": given.blocks,
            "duration_s": given.duration, "warmup_s": 0.5, "design": given.design, "wait_s": 600,
        },
    )  # fmt: skip
    return {
        found.contrast.response: found.decision.kind if found.decision else OUTCOMES[-1]
        for found in evaluate(run)
        if found.contrast.response in RESPONSES
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="duels of each kind")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--duration", type=float, default=3.0, help="seconds of a trial")
    parser.add_argument("--design", default="trials", help="trials, slices or duet")
    parser.add_argument("--rounds", type=int, default=4000, help="work of a request")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        repository(folder, given.rounds)
        said: dict[tuple[str, str], Counter[str]] = {}
        for _ in range(given.times):
            for kind, new in (("planted 5%", "slow"), ("A/A", "fast")):
                for response, outcome in outcomes(folder, new, given).items():
                    said.setdefault((kind, response), Counter())[str(outcome)] += 1
    print("| duel | response | " + " | ".join(OUTCOMES) + " |")
    print("|---" * (len(OUTCOMES) + 2) + "|")
    for (kind, response), counts in said.items():
        cells = [Rate(counts[name], given.times).text() for name in OUTCOMES]
        print(f"| {kind} | {response} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
