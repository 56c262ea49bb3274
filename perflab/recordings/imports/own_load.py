"""``load.json`` of ``perflab load --out``: a load by itself, which is no trial of a run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from perflab.recordings import Remark
from perflab.recordings.imports.reading import Numbers, refused, share_name
from perflab.recordings.imports.results import NS_MS, OWN_FILE, ToolResult

OF_LOAD = ('"workload"', '"service_time_ms"', '"generator_lag_ms"')
MS_PER_S = 1e3
TIMES = "service_time_ms"
REMARKS = TypeAdapter(list[Remark])


def fits(text: str) -> bool:
    """Return whether a file is that of a load."""
    return text.lstrip().startswith("{") and all(name in text for name in OF_LOAD)


def read(path: Path, text: str) -> ToolResult:
    """Read the file of one load; ImportRefused where the load itself was invalid."""
    numbers = Numbers(path, text)
    if numbers.document.get("valid") is not True:
        reasons = "; ".join(each.text for each in _remarks(numbers, "reasons"))
        raise refused(path, 0, f"the load was INVALID ({reasons}): send it again")
    requests, failures = numbers.count("requests"), numbers.count("errors")
    times = {
        share_name(float(name[1:])) if name[1:2].isdigit() else name: (
            numbers.number_or_nan(TIMES, name)
        )
        for name in numbers.inside(TIMES)
    }
    succeeded = max(1, requests - failures)
    longest_s = times.get("max", math.nan) / MS_PER_S
    return ToolResult(
        requests=requests,
        failures=failures,
        rated=requests,
        duration_s=numbers.number("duration_s"),
        # The load tells that of successes, without the answers to what was sent last.
        throughput_rps=numbers.number_or_nan("throughput_rps") * requests / succeeded,
        times_ms=times,
        steps={**dict.fromkeys(times, NS_MS), "duration": longest_s},
        remarks=tuple(_remarks(numbers, "warnings")),
    )


def _remarks(numbers: Numbers, name: str) -> list[Remark]:
    try:
        return REMARKS.validate_python(numbers.document.get(name))
    except ValidationError:
        raise refused(numbers.path, 0, f"'{name}' is no list of remarks") from None


def unlike(texts: Iterable[str]) -> Iterator[Remark]:
    """Yield a remark where loads asked for other requests or arrivals than the first."""
    if len({json.dumps(json.loads(text).get("workload"), sort_keys=True) for text in texts}) > 1:
        text = "the loads asked for different requests or arrivals, and may differ for that alone"
        yield Remark(code="import.unlike", side="client", text=text)


def name_of(path: Path) -> str:
    """Return the name of a load: that of its folder, as all files have the same."""
    return f"{path.resolve().parent.name}/{path.name}" if path.name == OWN_FILE else path.name
