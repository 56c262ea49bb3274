"""Outputs that must not move: what small recordings of every experiment say, to nine digits."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import pytest

from perflab import systems
from perflab.analysis.results import AgainstStudy, Compared, Gate
from perflab.paths import project_root
from tests.golden.outputs import EXPECTED, difference, outputs_of
from tests.golden.recordings import CASES, NAMES, write_recording

ANEW = "'python -m tests.golden.write' writes it anew; CONTRIBUTING.md says when that may be"
KINDS = ("shown", "opposite", "undecided", "bounded", "refused")
SHOWN = (
    AgainstStudy.AS_PUBLISHED, AgainstStudy.IN_DIRECTION, AgainstStudy.LESS, AgainstStudy.MORE,
)  # fmt: skip
OPPOSITE = (AgainstStudy.OTHER_WAY, AgainstStudy.NO_EFFECT)
# The words of all results, without what may stand in brackets behind them.
WORDS = {str(result) for kind in (Compared, AgainstStudy) for result in kind}
NO_TIMES = "its claims are about throughput or CPU: only times are known to be at least something"
NOT_CUT_OFF = "its claims are about messages or operations, which no time-out cuts off"
# Kinds of findings that an experiment cannot have.
IMPOSSIBLE = {
    ("chat_ladder", "bounded"): NOT_CUT_OFF,
    ("latency_cpu", "bounded"): NOT_CUT_OFF,
    ("profile", "bounded"): NOT_CUT_OFF,
    ("serialization", "bounded"): NOT_CUT_OFF,
    ("flush_map", "bounded"): NO_TIMES,
    ("inference_runtime", "bounded"): NO_TIMES,
    ("sync_vs_async", "bounded"): NO_TIMES,
    ("client_overhead", "bounded"): NO_TIMES,
}
SHIPPED = {case.experiment for case in CASES.values()}


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_says_what_it_said(name: str, tmp_path: Path) -> None:
    run = write_recording(tmp_path, name)
    assert run.problems == []
    found, folder = outputs_of(run), EXPECTED / name
    assert sorted(found) == sorted(path.name for path in folder.iterdir()), ANEW
    moved = {file: difference((folder / file).read_text(), text) for file, text in found.items()}
    assert {file: text for file, text in moved.items() if text} == {}, ANEW


@pytest.mark.parametrize("experiment", sorted(SHIPPED))
def test_every_kind_of_finding_that_can_be_is_there(experiment: str) -> None:
    names = [name for name in NAMES if CASES[name.partition("/")[0]].experiment == experiment]
    texts = [(EXPECTED / name / "findings.csv").read_text() for name in names]
    rows = [row for text in texts for row in csv.DictReader(io.StringIO(text))]
    possible = {kind for kind in KINDS if (experiment, kind) not in IMPOSSIBLE}
    assert {kind_of(row) for row in rows} - {""} == possible


def test_every_experiment_and_no_other_file_is_there() -> None:
    assert {each.name for each in systems.experiments()} == SHIPPED
    assert {f"{path.parent.name}/{path.name}" for path in EXPECTED.glob("*/*")} == set(NAMES)


def test_a_number_and_a_word_that_moved_are_seen() -> None:
    text = "claim,measured\nfaster,1.23456789\n"
    assert not difference(text, text.replace("1.23456789", "1.23456790"))
    assert "line 2" in difference(text, text.replace("1.23456789", "1.23456799"))
    assert "line 2" in difference(text, text.replace("faster", "slower"))
    assert "expected 2 lines, found 3" in difference(text, f"{text}more,1\n")


def kind_of(row: dict[str, str]) -> str:
    """Return the kind of a finding; of one that nothing was published of, by what is seen."""
    low, high = float(row["95% low"]), float(row["95% high"])
    verdict = row["verdict"].partition(" (")[0]
    if row["n"] == "0":
        return "refused" if "may not be used" in row["left out"] else ""
    if math.isnan(low) != math.isnan(high):
        return "bounded"
    if not row["published"]:
        none = 0.0 if row["response"].endswith("difference") else 1.0
        return "shown" if low > none else "opposite" if high < none else "undecided"
    if row["published"] == "no effect" and verdict == AgainstStudy.MORE:
        return "opposite"
    words = {"shown": SHOWN, "opposite": OPPOSITE, "undecided": (AgainstStudy.NOT_DECIDED,)}
    return next((kind for kind, results in words.items() if verdict in results), "")


def test_every_result_is_a_word_of_the_glossary() -> None:
    glossary = (project_root() / "docs" / "reference" / "glossary.md").read_text()
    assert {word for word in {*WORDS, *Gate} if f"**{word}**" not in glossary} == set()
    files = [*EXPECTED.glob("*/*/findings.csv"), *EXPECTED.glob("*/*/figure-effect.csv")]
    rows = [row for file in files for row in csv.DictReader(io.StringIO(file.read_text()))]
    # The last line of an extract has sums.
    told = {row["verdict"].partition(" (")[0] for row in rows if row["claim"][:4] != "all "}
    assert told - WORDS - {""} == set()
    assert len(told & WORDS) > 8
