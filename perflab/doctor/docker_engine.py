"""The Docker engine: whether it answers, and whether its network has no proxy in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflab.doctor.finding import Finding


def asked() -> Mapping[str, Any] | None:
    """Return what the engine says of itself; None where none answers."""
    from docker.errors import DockerException

    from perflab.stacks.surveying import docker_client

    client = docker_client()
    if client is None:
        return None
    try:
        return dict(client.info())
    except (DockerException, OSError):
        return None
    finally:
        client.close()


def engine(info: Mapping[str, Any] | None) -> Finding:
    """Judge what the engine says of itself."""
    if info is None:
        return Finding(
            "Docker engine", "beware", "none answers: services run as plain processes",
            "start it and let this user reach it, or go on with --backend process",
        )  # fmt: skip
    shown = (
        f"{info.get('ServerVersion', 'unknown')}, cgroup v{info.get('CgroupVersion', '1')} by "
        f"{info.get('CgroupDriver', 'unknown')}"
    )
    networks = (info.get("Plugins") or {}).get("Network") or []
    if "host" not in networks or "Docker Desktop" in str(info.get("OperatingSystem", "")):
        return Finding(
            "Docker engine", "beware", f"{shown}; no host network: a proxy is in the path",
            "use an engine on Linux itself, or --backend process",
        )  # fmt: skip
    return Finding("Docker engine", "ok", f"{shown}, host network")
