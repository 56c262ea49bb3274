"""A run shows everything whole, and each verdict with its evidence; the start page shows all."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

import perflab
from perflab import api
from perflab.cli.outputs import print_shown
from perflab.host import facts
from perflab.host.lock import measurement_lock
from perflab.load.summary_table import INVALID, VALID, ShownSummary
from perflab.paths import notebooks_dir
from perflab.recordings import Run, RunWriter
from perflab.recordings.display import Shown
from perflab.reports.duels import are_variants
from perflab.reports.findings import sentences
from perflab.reports.rules import findings_of
from perflab.reports.runs import NO_RUNS
from perflab.reports.section import section_text
from perflab.reports.verdicts import Saved
from perflab.systems import experiment, names
from perflab.systems.inference.experiments.synchronous_commit import SynchronousCommitParameters
from tests.golden.recordings import write_recording
from tests.support.synthetic import ON_AND_OFF, contrast_of, write_run

PYTHON = re.compile(
    r"PosixPath|Parameters\(|\[\s*'|\('|dtype|<perflab|object at|array\(|None|nan\b|True|False"
)
LONG = " and ".join(f"it holds for case number {number} as well" for number in range(12))


def recorded(name: str, root: Path) -> Run:
    """Write a run of an experiment whose machine became slower by half."""
    run = write_recording(root, f"{name}/claimed")
    trials = run.trials()
    speed = 1 + 0.5 * (trials["block"] > 0)
    run._trials = trials.assign(cpu_probe_before_ms=5.0 * speed, cpu_probe_after_ms=5.0 * speed)
    return run


def words_of(shown: object) -> str:
    """Return the text that a reader sees of an object's HTML."""
    text = re.sub(r"<br>|</?(?:td|th|tr|p|li)\b[^>]*>", "\n", shown._repr_html_())
    return html.unescape(re.sub(r"<[^>]+>", "", text))


@dataclass(frozen=True)
class Rendered:
    """A run of an experiment, with every text about it."""

    run: Run
    texts: dict[str, str]
    findings: Shown

    @property
    def table(self) -> pd.DataFrame:
        return self.findings.table


@pytest.fixture(scope="module", params=names())
def rendered(request, tmp_path_factory) -> Rendered:
    run = recorded(request.param, tmp_path_factory.mktemp(request.param))
    findings = api.findings(run)
    shown = {
        "answers": api.answers(run),
        "findings": findings,
        "summary": api.summary(run),
        "bottlenecks": api.bottlenecks(run),
        "run": run,
    }
    pages = {name: words_of(item) for name, item in shown.items()}
    plain = {f"{name} as text": repr(item) for name, item in shown.items()}
    return Rendered(
        run, {**pages, **plain, "section": section_text(run, findings_of(run))}, findings
    )


def test_nothing_of_an_experiment_is_cut_or_shown_as_python_writes_it(rendered) -> None:
    for name, text in rendered.texts.items():
        assert text.strip(), name
        assert not re.search(r"\.\.\.|…", text), name
        assert not (match := PYTHON.search(text)), (name, match)
    joined = " ".join(rendered.texts["findings"].split())
    for claim in rendered.table["claim"]:
        assert claim in joined


def test_valid_trials_and_noise_stand_beside_every_verdict(rendered) -> None:
    table = rendered.table
    assert len(table)
    assert table["valid trials"].str.fullmatch(r"\d+ of \d+").all()
    assert table["noise"].str.contains("speed changed 1.5x").all()
    assert rendered.texts["findings"].count("speed changed 1.5x") == len(table)
    told = sentences(rendered.run, findings_of(rendered.run))
    if are_variants(rendered.run):
        assert "speed changed 1.5x" in " ".join(told)
        return
    of_claims = [line for line in told if not line.startswith("Not asked")]
    assert all(line in rendered.texts["findings"] for line in told if line not in of_claims)
    assert len(of_claims) == len(table)
    for line in of_claims:
        assert re.search(r"\d+ of \d+ trials? valid; noise: .*speed changed 1\.5x", line)
        assert line in rendered.texts["section"].replace("\\|", "|")


def test_a_terminal_of_80_columns_shows_every_claim_with_what_it_rests_on(
    rendered, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_shown(rendered.findings)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"[…│┃┏━└]", text)
    assert text.count("speed changed") == len(rendered.table)
    assert len(re.findall(r"^valid trials +\d+ of \d+", text, re.M)) == len(rendered.table)


@pytest.fixture(scope="module")
def odd(tmp_path_factory) -> Run:
    """A claim as long as a paragraph, with characters that HTML and Markdown would interpret."""
    contrast = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], claim=f"<b>{LONG}</b> & a | b")
    return write_run(tmp_path_factory.mktemp("odd"), contrasts=[contrast], invalid={(0, 0)})


def test_a_long_claim_stands_whole_and_escaped(odd) -> None:
    shown = api.findings(odd)
    assert LONG in words_of(shown)
    assert "&lt;b&gt;" in shown._repr_html_()
    assert "<b>it holds" not in shown._repr_html_()
    assert LONG in " ".join(repr(shown).split())


def test_numbers_lean_right_and_text_left() -> None:
    page = api.show(pd.DataFrame({"what": ["a" * 90], "how many": [1234.5]}))._repr_html_()
    assert re.search(r'<td style="text-align: right;[^>]*>1,234<|>1,235<', page)
    assert re.search(r'<td style="text-align: left;[^>]*>a{90}<', page)


def test_a_run_shows_how_far_it_came_and_where_it_lies(odd) -> None:
    for text in (words_of(odd), repr(odd)):
        for part in (odd.run_id, "finished", "process", "11 of 12 valid", str(odd.path)):
            assert part in text


def test_parameters_show_what_differs_from_the_default() -> None:
    page = words_of(SynchronousCommitParameters(blocks=3, from_run="latest"))
    cells = [line for line in page.splitlines() if line]
    assert cells == [
        "Changed parameters", "parameter", "value", "default",
        "blocks", "3", "8", "from_run", "latest", "none",
    ]  # fmt: skip
    assert repr(SynchronousCommitParameters()) == "- Every parameter has its default."


def test_saved_files_are_told_by_folder_and_name(tmp_path) -> None:
    names = ("throughput.svg", "throughput.png", "throughput.csv", "section.md")
    saved = Saved((tmp_path / name for name in names), "faster? yes: +20%")
    for text in (words_of(saved), repr(saved)):
        # The reader of a notebook that was run stands here.
        assert text.strip().startswith("faster? yes: +20%")
        assert all(
            part in text for part in (str(tmp_path), "throughput.svg, .png, .csv", "section.md")
        )
        assert "Path(" not in text


def test_a_run_without_a_claim_has_a_table_without_rows(tmp_path) -> None:
    run = write_run(tmp_path, blocks=1, requests=20, contrasts=[])
    assert "(no rows)" in words_of(api.findings(run))
    assert "(no rows)" in repr(api.findings(run))


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("PERFLAB_LOCK", str(tmp_path / "lock"))
    return tmp_path / "runs"


def test_every_experiment_is_there_with_its_question_and_a_link_that_leads_somewhere() -> None:
    shown = perflab.questions()
    page = shown._repr_html_()
    assert set(shown.table["question"]) >= {experiment(name).question for name in names()}
    addresses = re.findall(r'href="([^"]+)"', page)
    assert len(addresses) == len(names())
    assert all((notebooks_dir() / address).is_file() for address in addresses)
    table = shown.table.head(1).assign(experiment='"><script>')
    assert "<script>" not in Shown(table, table, links={'"><script>': '"><script>'})._repr_html_()


def test_without_runs_the_page_says_how_to_make_one(runs: Path) -> None:
    assert not runs.exists()
    assert NO_RUNS in perflab.latest_runs()._repr_html_()


def test_the_newest_runs_stand_first_with_what_to_type(runs: Path) -> None:
    for number, state in enumerate(("finished", "interrupted", "running", "finished")):
        write_run(runs, blocks=1, requests=40, run_id=f"2026010{number}T0Z-e-{number}", state=state)
    table = perflab.latest_runs(3).table
    assert list(table["state"]) == ["finished", "killed", "interrupted"]
    assert list(table["next"]) == [
        'from_run = "20260103T0Z-e-3"', 'resume = "20260102T0Z-e-2"', 'resume = "20260101T0Z-e-1"',
    ]  # fmt: skip


@pytest.mark.promise
def test_a_killed_run_is_not_running_because_something_else_is_measured(runs: Path) -> None:
    names = ("killed", "before", "measured")
    for number, name in enumerate(names):
        run_id = f"2026010{number}T0Z-e-{name}"
        write_run(runs, blocks=1, requests=40, run_id=run_id, state="running")
    with measurement_lock("perflab load"):
        now = facts.session()
        sessions = {"before": {**now, "at": "2020-01-01T00:00:00Z"}, "measured": now}
        for path in runs.iterdir():
            name = path.name.rpartition("-")[2]
            if name in sessions:
                RunWriter.reopen(path).update(sessions=[sessions[name]])
        states = list(perflab.latest_runs(3).table["state"])
    assert dict(zip(reversed(names), states, strict=True)) == {
        "killed": "killed", "before": "killed", "measured": "running",
    }  # fmt: skip
    assert list(perflab.latest_runs(3).table["state"]) == ["killed"] * 3


@pytest.mark.parametrize(("valid", "color"), [(True, VALID), (False, INVALID)])
def test_a_load_shows_itself_as_the_command_prints_it(
    valid: bool, color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "perflab.load.summary_table.table", lambda shown: f"<{shown.requests}>\nline 2"
    )
    shown = ShownSummary.model_construct(valid=valid, requests=7)
    page = shown._repr_html_()
    assert "&lt;7&gt;\nline 2" in page
    assert color in page
