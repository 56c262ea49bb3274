"""Settings of the lab in the environment: which are set, and which have no meaning."""

from __future__ import annotations

from collections.abc import Mapping

from perflab.doctor.finding import Finding
from perflab.parameters import did_you_mean

KNOWN = (
    "PERFLAB_CA_BUNDLE", "PERFLAB_COMPILED", "PERFLAB_ENVIRONMENTS", "PERFLAB_EXAMPLES",
    "PERFLAB_FIGURES", "PERFLAB_HOST", "PERFLAB_LOCK", "PERFLAB_NOTEBOOKS", "PERFLAB_PROGRESS",
    "PERFLAB_REQUIRE_BROWSER", "PERFLAB_REQUIRE_DOCKER", "PERFLAB_ROOT", "PERFLAB_RUNS",
    "PERFLAB_STATE", "PERFLAB_SWEEPS", "PERFLAB_SYSTEMS",
)  # fmt: skip


def settings(environment: Mapping[str, str]) -> Finding:
    """Judge the variables that begin with PERFLAB_."""
    given = {name: value for name, value in environment.items() if name.startswith("PERFLAB_")}
    unknown = [f"{name}{did_you_mean(name, KNOWN)}" for name in sorted(given) if name not in KNOWN]
    if unknown:
        return Finding("settings", "beware", f"nobody reads {'; '.join(unknown)}", "unset them")
    shown = ", ".join(f"{name}={value}" for name, value in sorted(given.items()))
    return Finding("settings", "ok", shown or "none: defaults")
