"""What else runs: load of other programs, and time that other guests of the machine take."""

from __future__ import annotations

import time
from dataclasses import dataclass

from perflab.doctor.finding import Finding, Machine

LOOK_S = 1.0
BUSY_SHARE, STOLEN_SHARE = 0.10, 0.01


@dataclass(frozen=True)
class CoreTicks:
    """Time of all cores together, in ticks of the kernel."""

    busy: int
    stolen: int
    every: int


def ticks(machine: Machine) -> CoreTicks | None:
    """Read /proc/stat; None where it does not tell."""
    words = machine.line("/proc/stat").split()
    if len(words) < 9 or words[0] != "cpu":
        return None
    user, nice, system, idle, waiting, irq, softirq, stolen = map(int, words[1:9])
    busy = user + nice + system + irq + softirq
    return CoreTicks(busy, stolen, busy + stolen + idle + waiting)


def looked(machine: Machine, for_s: float = LOOK_S) -> list[Finding]:
    """Look twice, and judge what was done in between."""
    before = ticks(machine)
    time.sleep(for_s)
    return between(before, ticks(machine))


def between(before: CoreTicks | None, after: CoreTicks | None) -> list[Finding]:
    """Judge other programs and stolen time between two looks."""
    if before is None or after is None or after.every <= before.every:
        return [Finding("other programs", "ok", "the kernel does not tell")]
    span = after.every - before.every
    busy, stolen = (after.busy - before.busy) / span, (after.stolen - before.stolen) / span
    return [
        _judged(
            "other programs", busy, BUSY_SHARE,
            "stop what runs beside ('top' shows it)",
        ),
        _judged(
            "stolen time", stolen, STOLEN_SHARE,
            "take a machine of your own, or measure when its neighbours rest",
        ),
    ]  # fmt: skip


def _judged(what: str, share: float, most: float, todo: str) -> Finding:
    shown = f"{share:.1%} of all cores in {LOOK_S:g} s"
    return Finding(what, "beware", shown, todo) if share > most else Finding(what, "ok", shown)
