"""Settings of a machine that bear on measurements: their good values, and how to change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Switch(NamedTuple):
    """A setting, its good values, what any other one does, and how it is changed."""

    what: str
    good: tuple[str, ...]
    effect: str
    todo: str


# By their names in a run's record (:func:`perflab.host.facts.switches`).
SWITCHES: Mapping[str, Switch] = {
    "governor": Switch(
        "CPU governor",
        ("performance",),
        "the clock rate may follow the load; 'performance' holds it",
        "cpupower frequency-set --governor performance",
    ),
    "turbo": Switch(
        "turbo",
        ("off",),
        "speed depends on temperature and on other cores",
        "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > "
        "/sys/devices/system/cpu/cpufreq/boost",
    ),
    "clock_source": Switch(
        "clock source",
        ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"),
        "reading the clock is slow or coarse",
        "echo one of available_clocksource > "
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
}
