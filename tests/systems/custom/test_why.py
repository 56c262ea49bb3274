"""``--why``: a duel of real services with a database says what makes the difference."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perflab.recordings import Run
from perflab.reports.cells import cell
from perflab.stacks import cleanup
from tests.support.typing_in import perflab
from tests.systems.custom.test_variants import problems

SERVER = f"{sys.executable} {Path(__file__).with_name('asking_server.py')}"


def duel(runs: Path, planted: str, *words: str) -> subprocess.CompletedProcess[str]:
    return asked(
        runs, "--variant", f"old=command:{SERVER}", "--variant", f"new=command:{SERVER} {planted}",
        "--needs", "db=postgres", "--env", "DATABASE_URL={db.url}", "--setup", f"{SERVER} fill",
        "--users", "1", "--blocks", "1", "--duration", "0.3", "--warmup", "0.1", *words,
    )  # fmt: skip


def asked(runs: Path, *words: str, why: str = "--why") -> subprocess.CompletedProcess[str]:
    folders = {"PERFLAB_RUNS": str(runs), "PERFLAB_FIGURES": str(runs / "figures")}
    return perflab("duel", *filter(None, [why]), *words, **folders)


@pytest.mark.slow
@pytest.mark.promise
@pytest.mark.timeout(900)
def test_planted_causes_are_in_the_accounts_and_the_comparison_does_not_hold_their_trials(
    tmp_path: Path,
) -> None:
    planted, summary = "loop sleep connection serializer", tmp_path / "summary.md"
    done = duel(tmp_path, planted, "--json", "--summary", str(summary))
    assert done.returncode in (0, 4), done.stderr
    answer = json.loads(done.stdout)
    why = answer["why"]["new"]
    counts, times = (
        {(row["kind"], row["name"]): (row["old"], row["new"]) for row in why[of]}
        for of in ("counts", "times_ms")
    )
    # Counts are exact, and times of 10 ms a request are seen on any machine.
    assert counts["statement", "db: SELECT id FROM items WHERE id = $1"] == (0, 20)
    old, new = counts["count", "connections opened"]
    assert old < 0.2 < 0.9 < new
    slept = times["wait", "the end of a sleep"]
    assert slept[1] > 5 > slept[0]
    # On a very busy machine py-spy may not come to its samples: CPU is then one entry.
    if ("cpu", "") not in times:
        ((old, new),) = (
            sides for (_, name), sides in times.items() if name.startswith("serialize (")
        )
        assert new > 2 * old
    first = next(line for line in answer["answers"] if line.startswith("why: "))
    assert cell(first) in summary.read_text()
    run = Run(next(tmp_path.glob("2*")))
    assert len(run.trials()) == 2
    assert cleanup.everything() == []


LOCKED = """
import os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
LOCK = threading.Lock() if "lock" in sys.argv else threading.Semaphore(99)
def guarded():
    with LOCK:
        time.sleep(0.005)
class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        guarded()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *words): pass
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""


@pytest.mark.slow
def test_the_function_in_which_requests_wait_for_a_lock_is_named_also_later(tmp_path: Path) -> None:
    (tmp_path / "locked.py").write_text(LOCKED)
    server = f"command:{sys.executable} {tmp_path / 'locked.py'}"
    runs = tmp_path / "runs"
    done = asked(
        runs, "--variant", f"old={server}", "--variant", f"new={server} lock",
        "--users", "6", "--blocks", "1", "--duration", "0.3", "--warmup", "0.1", "--json", why="",
    )  # fmt: skip
    assert done.returncode in (0, 4), done.stderr
    (path,) = runs.glob("2*")
    before = Run(path).trials()
    later = asked(runs, "--resume", path.name, "--json")
    assert later.returncode in (0, 4), later.stderr
    lines = json.loads(later.stdout)["answers"]
    assert any("requests wait in guarded (" in line for line in lines), lines
    assert Run(path).trials().equals(before)
    assert Run(path).record.parameters["why"]


def test_why_of_a_service_that_the_lab_does_not_start_is_refused() -> None:
    variants = ["a=url:http://127.0.0.1:9", "b=url:http://127.0.0.1:8"]
    told = problems(variants=variants, why=True)
    assert "why needs services that the lab starts, and url: is none" in told
