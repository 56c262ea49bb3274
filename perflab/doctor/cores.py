"""Cores: how many, what the lab can keep apart on them, and what changes their speed."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.doctor.finding import Finding, Machine
from perflab.host.placing import placement

CPU = "/sys/devices/system/cpu"
CLOCK = "/sys/devices/system/clocksource/clocksource0"
# Clocks that are read without a call into the kernel.
FAST_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter")


def apart(cores: Sequence[int]) -> Finding:
    """Tell what shares a core with what."""
    found = placement(cores)
    if len(cores) < 2:
        return Finding(
            "cores", "wrong", found.shared, "give the lab two cores at least (affinity, cpuset)"
        )
    if found.shared:
        return Finding("cores", "beware", found.shared, "8 cores keep all of them apart")
    return Finding("cores", "ok", f"{len(cores)} cores: every role has its own")


def hyperthreads(machine: Machine) -> Finding:
    """Tell whether two logical cores share one."""
    active = machine.line(f"{CPU}/smt/active")
    if active == "1":
        return Finding(
            "SMT", "beware", "on: two logical cores share one, and slow each other down",
            f"switch it off for measurements: echo off > {CPU}/smt/control",
        )  # fmt: skip
    return Finding("SMT", "ok", "off" if active == "0" else "the kernel does not tell")


def governor(machine: Machine) -> Finding:
    """Tell whether the clock rate follows the load."""
    name = machine.line(f"{CPU}/cpu0/cpufreq/scaling_governor")
    if not name:
        return Finding("governor", "ok", "none here (a virtual machine, mostly)")
    if name == "performance":
        return Finding("governor", "ok", name)
    return Finding(
        "governor", "beware", f"{name}: the clock rate follows the load",
        "cpupower frequency-set --governor performance",
    )  # fmt: skip


def turbo(machine: Machine) -> Finding:
    """Tell whether the clock rate may rise above its base."""
    off, boost = machine.line(f"{CPU}/intel_pstate/no_turbo"), machine.line(f"{CPU}/cpufreq/boost")
    if off == "0" or boost == "1":
        file = f"{CPU}/intel_pstate/no_turbo" if off else f"{CPU}/cpufreq/boost"
        return Finding(
            "turbo", "beware", "on: the clock rate depends on temperature and on other cores",
            f"echo {1 if off else 0} > {file}",
        )  # fmt: skip
    return Finding("turbo", "ok", "off" if off or boost else "the kernel does not tell")


def clock(machine: Machine) -> Finding:
    """Tell whether reading the clock is cheap."""
    name = machine.line(f"{CLOCK}/current_clocksource")
    if not name or name in FAST_CLOCKS or name.startswith("hyperv_clocksource_tsc"):
        return Finding("clock source", "ok", name or "the kernel does not tell")
    others = machine.line(f"{CLOCK}/available_clocksource").split()
    fast = next((each for each in others if each in FAST_CLOCKS), "")
    todo = f"echo {fast} > {CLOCK}/current_clocksource" if fast else "no faster one is offered here"
    return Finding("clock source", "beware", f"{name}: slow to read", todo)
