"""The sentences of a study's page have numbers that were published or that a shipped run tells."""

from __future__ import annotations

import runpy

import pytest

from perflab.paths import project_root
from perflab.recordings import Run
from tests.golden.recordings import write_recording

SENTENCES = runpy.run_path(str(project_root() / "scripts" / "sentences.py"))
TABLE = """
<!-- perflab:begin reference 0 -->
| 9,876.5 |
<!-- perflab:end -->
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_recording(tmp_path_factory.mktemp("runs"), "latency_cpu/claimed")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("250 users cause some 6,250 deliveries a second.", []),
        ("Latency falls by 31.7%, or 5.555x.", ["31.7", "5.555"]),
        (f"`-p blocks=3171`, [3171](3171.md)\n{TABLE}\n```\nrun 3171\n```\n", ["3171"]),
        (f"`-p blocks=3171`\n{TABLE}\n```\nrun 3171\n```\n", []),
        ("A run of ours (a757d8) says so.", ["a757d8"]),
        ("word " * 901, ["901"]),
    ],
)
def test_what_a_page_may_not_say_is_named(run: Run, text: str, named: list[str]) -> None:
    found = SENTENCES["faults"](text, "chat", [run])
    assert [fault for fault in found if not any(name in fault for name in named)] == []
    assert [name for name in named if name not in " ".join(found)] == []


def test_what_a_run_answers_may_be_said(run: Run) -> None:
    told = sorted(SENTENCES["known_numbers"]("chat", [run]) - {*range(10_000)})
    assert told
    text = ", ".join(f"{number:.10g}" for number in told)
    assert SENTENCES["faults"](text, "chat", [run]) == []
