"""What the kernel lets processes and connections have."""

from __future__ import annotations

from perflab.doctor.finding import Finding, Machine, State

FEW_FILES, MANY_FILES = 1024, 16_384
FEW_PORTS = 20_000
SHORT_BACKLOG = 1024
NET = "/proc/sys/net"
SWAP_MB = 64


def files(most: int) -> Finding:
    """Judge the hard limit of open files, which the lab raises its own to."""
    if most >= MANY_FILES:
        return Finding("open files", "ok", f"{most:,} per process")
    state: State = "wrong" if most < FEW_FILES else "beware"
    return Finding(
        "open files", state, f"{most:,} per process: each connection takes one",
        f"ulimit -Hn {MANY_FILES * 4} (permanent: /etc/security/limits.d)",
    )  # fmt: skip


def ports(machine: Machine) -> Finding:
    """Judge how many connections to one address can be open, or have just been closed."""
    words = machine.line(f"{NET}/ipv4/ip_local_port_range").split()
    if len(words) != 2 or not all(each.isdecimal() for each in words):
        return Finding("local ports", "ok", "the kernel does not tell")
    count = int(words[1]) - int(words[0]) + 1
    if count >= FEW_PORTS:
        return Finding("local ports", "ok", f"{count:,}")
    return Finding(
        "local ports", "beware", f"{count:,}: a load with a connection per request runs out",
        "sysctl -w net.ipv4.ip_local_port_range='15000 65000'",
    )  # fmt: skip


def backlog(machine: Machine) -> Finding:
    """Judge how many connections may wait for a service to take them."""
    length = machine.number(f"{NET}/core/somaxconn")
    if length is None or length >= SHORT_BACKLOG:
        return Finding("somaxconn", "ok", "the kernel does not tell" if length is None
                       else f"{length:,}")  # fmt: skip
    return Finding(
        "somaxconn", "beware",
        f"{length:,}: connections beyond it wait a second for their next attempt",
        "sysctl -w net.core.somaxconn=4096",
    )  # fmt: skip


def reuse(machine: Machine) -> Finding:
    """Judge whether ports of closed connections can be taken again on loopback."""
    value = machine.number(f"{NET}/ipv4/tcp_tw_reuse")
    if value == 0:
        return Finding(
            "tcp_tw_reuse", "beware", "0: a closed connection keeps its port for a minute",
            "sysctl -w net.ipv4.tcp_tw_reuse=2",
        )  # fmt: skip
    return Finding("tcp_tw_reuse", "ok", "the kernel does not tell" if value is None
                   else str(value))  # fmt: skip


def swap(machine: Machine) -> Finding:
    """Judge whether memory has been moved to a disk."""
    lines = machine.text("/proc/meminfo").splitlines()
    kb = {name: int(rest.split()[0]) for name, _, rest in (each.partition(":") for each in lines)
          if rest.split() and rest.split()[0].isdecimal()}  # fmt: skip
    used_mb = (kb.get("SwapTotal", 0) - kb.get("SwapFree", 0)) / 1024
    if used_mb > SWAP_MB:
        return Finding(
            "swap", "beware", f"{used_mb:,.0f} MB are in use: what is there answers late",
            "free memory, then swapoff -a; swapon -a",
        )  # fmt: skip
    return Finding("swap", "ok", f"{used_mb:,.0f} MB in use" if kb.get("SwapTotal") else "none")
