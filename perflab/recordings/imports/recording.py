"""Writes imported loads as a run, which appears whole or not at all."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from perflab.errors import ImportRefused, ParameterError
from perflab.host.files import ANEW, explained, whole_folder
from perflab.recordings import (
    Remark,
    Run,
    RunRecord,
    RunWriter,
    TreatmentRecord,
    new_run_id,
    trial_id,
)
from perflab.recordings.imports import ab, k6, locust, oha, own_load, wrk
from perflab.recordings.imports.reading import bytes_of, refused, text_of
from perflab.recordings.imports.results import (
    CONTRADICTION,
    OWN,
    OWN_FILE,
    ToolResult,
    check,
    declared_responses,
    not_judged,
    remarks_of,
    result_columns,
)
from perflab.recordings.schema import BACKEND
from perflab.recordings.store import make_root
from perflab.recordings.tables import NOT_JUDGED

_SENT = (
    "Coordinated omission is not corrected: times do not hold the wait of a request before it is "
    "sent."
)
_K6 = (
    "Coordinated omission is not corrected: times count from the sending, even if an arrival rate "
    "plans the iterations; k6 reports those that it could not start as dropped_iterations."
)
_OHA = (
    "oha counts from its plan only with -q and --latency-correction, and its JSON does not say "
    "whether it did: a service time here may count from the planned instant."
)
_WRK = (
    "wrk corrects by a guess: for a time that is much longer than its mean interval between "
    "requests it adds made-up shorter ones. Its times count from the sending all the same."
)


_OWN = "Service times count from the sending, as those of other tools do."
_NO_TRIALS = (
    "These are loads by themselves, and no trials of a run: a duel starts services afresh, in "
    "random order, and says which side is worse."
)
# What perflab does not read, by how it begins, and what to do.
NOT_READ = {
    r"timeStamp,elapsed,|(<\?xml.*\s*)?<testResults": "the JTL of JMeter; 'jmeter -g FILE -o "
    "FOLDER' reports it, and 'perflab load' or 'perflab duel' measures the same service",
    r'\{.*"type":\s*"(Metric|Point)"|metric_name,timestamp,': "k6's single values, which do not "
    "tell whether the load ended; run k6 with --summary-export FILE",
}
EXPERIMENT = "imported"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,=+:-]{0,99}", re.ASCII)
MISSING = (
    "planned instants", "generator lag", "the client's CPU and stalls",
    "CPU and memory of services", "what the server counted", "facts of the machine",
)  # fmt: skip
# What a load of the lab's own lacks.
OWN_MISSING = ("the order of loads", "CPU and memory of services", "facts of the machine")


@dataclass(frozen=True)
class Format:
    """An output format of a tool; ``omission`` is the warning about coordinated omission.

    A file may hold several loads if each ``begin``s and ``end``s with a line of its own.
    """

    tool: str
    name: str
    fits: Callable[[str], bool]
    read: Callable[[Path, str], ToolResult]
    omission: str = _SENT
    begin: str = ""
    end: str = ""

    def loads(self, path: Path, text: str) -> Iterator[tuple[int, str]]:
        """Yield line and text of each load; empty lines stand for those above it."""
        if not self.begin:
            yield 1, text
            return
        lines = text.splitlines()
        begins = [at for at, line in enumerate(lines) if re.fullmatch(self.begin, line)]
        if not begins:
            raise refused(path, 1, f"it holds no report of {self.tool}")
        for begin, stop in pairwise([*begins, len(lines)]):
            ends = [at for at in range(begin, stop) if re.fullmatch(self.end, lines[at])]
            last = ends[-1] + 1 if ends else stop
            yield begin + 1, "\n" * begin + "\n".join(lines[begin:last])


FORMATS = (
    Format("k6", "summary", k6.fits, k6.read, _K6),
    Format("locust", "CSV", locust.fits, locust.read),
    Format("oha", "JSON", oha.fits, oha.read, _OHA),
    Format("wrk", "text", wrk.fits, wrk.read, _WRK, wrk.BEGIN, wrk.END),
    Format("ab", "text", ab.fits, ab.read, begin=ab.BEGIN, end=ab.END),
    Format(OWN, OWN_FILE, own_load.fits, own_load.read, _OWN),
)
TOOLS = tuple(dict.fromkeys(form.tool for form in FORMATS))


def format_of(path: Path, text: str, tool: str = "") -> Format:
    """Return the format of a file by its beginning; with ``tool`` one of this tool.

    ImportRefused where none fits, or those of several tools.
    """
    named = [form for form in FORMATS if form.tool == (tool or form.tool)]
    fitting = [form for form in named if form.fits(text)]
    if len({form.tool for form in fitting}) > 1:
        tools = " and ".join(form.tool for form in fitting)
        raise refused(path, 0, f"it holds results of {tools}; name one, like --tool {TOOLS[0]}")
    if fitting or tool:
        return [*fitting, *named][0]
    for begin, what in NOT_READ.items():
        if re.match(begin, text.lstrip()):
            raise refused(path, 1, f"perflab does not import {what}")
    problem = f"it is no output of {', '.join(TOOLS)} that perflab imports"
    raise refused(path, 1, f"{problem}; docs/how-to/import.md lists the outputs, --tool names one")


@dataclass(frozen=True)
class ImportedLoad:
    """A load, and where its ``text`` stands; ``sha256`` is that of the whole file."""

    path: Path
    line: int
    text: str
    sha256: str
    form: Format
    result: ToolResult

    def __str__(self) -> str:
        name = own_load.name_of(self.path)
        return f"{name}, line {self.line}" if self.line > 1 else name


def import_files(groups: Mapping[str, Sequence[Path]], root: Path, tool: str = "") -> Run:
    """Write the loads of files as a run under ``root``, and return it.

    ``groups`` are the files of every treatment. The k-th load of every treatment stands in the k-th
    block, although these loads are no pairs. With ``tool`` all files are read as this tool's.

    ParameterError where a name or a number of files is not allowed; nothing was written.
    ImportRefused where a file is damaged, or of another tool; nothing was written. RecordingError
    where the run cannot be written, or the folder is another user's.
    """
    _check_names(groups, tool)
    loads, left_out = loads_of(groups, tool)
    record = _record(loads, left_out)
    target = root / record.run_id
    with explained(target, "nothing was recorded", ANEW):
        make_root(root)
        with whole_folder(target) as folder:
            _commit(RunWriter.begin(folder, record), loads)
    return Run(target)


def _commit(writer: RunWriter, loads: Mapping[str, Sequence[ImportedLoad]]) -> None:
    for position, (name, group) in enumerate(loads.items()):
        for block, load in enumerate(group):
            writer.commit_trial(_row(load, name, block, position), None, None)


def _check_names(groups: Mapping[str, Sequence[Path]], tool: str) -> None:
    """Raise ParameterError where a treatment has a wrong name or no file, or for another tool."""
    problems = [
        f"treatment '{name:.100}': a name has letters, digits and _ . , = + : -, at most 100"
        for name in groups
        if not NAME.fullmatch(name)
    ]
    problems += [f"treatment '{name}' has no file" for name, files in groups.items() if not files]
    if tool and tool not in TOOLS:
        problems.append(f"--tool '{tool:.100}' is none of {', '.join(TOOLS)}")
    if not groups:
        problems.append("no file was named; write perflab import FILE...")
    if problems:
        raise ParameterError("perflab import", problems)


def loads_of(
    groups: Mapping[str, Sequence[Path]], tool: str = ""
) -> tuple[dict[str, list[ImportedLoad]], list[Remark]]:
    """Return the loads by treatment, and which files were left out.

    ImportRefused where loads are equal, or of several tools.
    """
    loads: dict[str, list[ImportedLoad]] = {name: [] for name in groups}
    left_out = []
    for name, path in ((name, path) for name, paths in groups.items() for path in paths):
        content = bytes_of(path)
        text = text_of(path, content)
        if what := locust.beside(path, text):
            left_out.append(Remark(code="import.left_out", text=f"{path.name} is left out: {what}"))
        else:
            form, sha256 = format_of(path, text, tool), hashlib.sha256(content).hexdigest()
            for line, part in form.loads(path, text):
                result = form.read(path, part)
                check(path, result)
                words = "\n".join(map(str.rstrip, part.strip().splitlines()))
                loads[name].append(ImportedLoad(path, line, words, sha256, form, result))
        if path == groups[name][-1] and not loads[name]:
            raise refused(path, 0, "it tells of no whole load; of Locust import PREFIX_stats.csv")
    _check_alike([load for group in loads.values() for load in group])
    return loads, left_out


def _check_alike(loads: Sequence[ImportedLoad]) -> None:
    """Raise ImportRefused where loads are equal, or of several tools."""
    first = loads[0]
    loads_by_text: dict[str, ImportedLoad] = {}
    for load in loads:
        if same := loads_by_text.get(load.text):
            problem = f"{load} is the same as {same}; every load counts once"
            raise ImportRefused(f"{load.path}: {problem}")
        loads_by_text[load.text] = load
        if load.form is not first.form:
            raise ImportRefused(
                f"{load.path}: it is of {load.form.tool} ({load.form.name}), and {first.path} is "
                f"of {first.form.tool} ({first.form.name}); a run holds loads of one tool: import "
                "each tool's files by themselves"
            )


def _row(load: ImportedLoad, name: str, block: int, position: int) -> dict[str, Any]:
    tool = load.form.tool
    return {
        "trial_id": trial_id(block, position, 0),
        "block": block,
        "position": position,
        "attempt": 0,
        "treatment": name,
        "factor_treatment": name,
        "state": NOT_JUDGED,
        "started_at": "",
        "reasons": [not_judged(tool)],
        "warnings": remarks_of(load.result, tool),
        "told_by": str(load),
        "told_sha256": load.sha256,
        **result_columns(load.result),
    }


def _record(loads: Mapping[str, Sequence[ImportedLoad]], left_out: Sequence[Remark]) -> RunRecord:
    """Return the record of an imported run: a treatment for each name, a trial for each load.

    All loads are of one tool and one format. The order of the blocks is that of the files: nobody
    knows in which order the loads were made.
    """
    # Several imports a second are usual, and the newest must be known.
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    blocks = max(map(len, loads.values()))
    form = next(load.form for group in loads.values() for load in group)
    return RunRecord(
        run_id=new_run_id(EXPERIMENT),
        experiment=EXPERIMENT,
        title=f"Imported: {form.tool} ({form.name})",
        question=f"What did {form.tool} report of {', '.join(loads)}?",
        responses=declared_responses(form.tool),
        state="finished",
        created_at=now,
        finished_at=now,
        # Runs of different tools or formats are not compared.
        parameters={"tool": form.tool, "format": form.name},
        factors={"treatment": [*loads]},
        treatments=[TreatmentRecord(name=name, levels={"treatment": name}) for name in loads],
        blocks=blocks,
        seed=0,
        order=[[*loads]] * blocks,
        backend=BACKEND,
        network_path=f"as {form.tool} was told",
        warnings=[*_warnings(form), *left_out, *_contradictions(loads), *_unlike(loads)],
        notes={"import": {"missing": [*(OWN_MISSING if form.tool == OWN else MISSING)]}},
    )


def _warnings(form: Format) -> list[Remark]:
    text = f"The lab vouches for none of these numbers: {form.tool} counted them, not the lab."
    text = _NO_TRIALS if form.tool == OWN else text
    return [
        Remark(code="import.told", side="client", text=text),
        Remark(code="import.omission", side="client", text=form.omission),
    ]


def _unlike(loads: Mapping[str, Sequence[ImportedLoad]]) -> Iterator[Remark]:
    texts = [load.text for group in loads.values() for load in group if load.form.tool == OWN]
    return own_load.unlike(texts)


def _contradictions(loads: Mapping[str, Sequence[ImportedLoad]]) -> Iterator[Remark]:
    """Yield for the whole run what loads say against themselves, with the file's name."""
    for load in (load for group in loads.values() for load in group):
        for remark in remarks_of(load.result, load.form.tool):
            if remark.code == CONTRADICTION:
                yield remark.model_copy(update={"text": f"{load}: {remark.text}"})
