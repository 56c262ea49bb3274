"""The published load of the LLM proxy study as parameters, from its rows."""

from __future__ import annotations

from typing import Any

from perflab.recordings import published_value

STUDY = "llm_proxy"
METHOD, RESULTS, EFFECTS = "method", "results table", "published effects"
# Where each parameter stands. Of the model's speed and the answers' length nothing is published.
PUBLISHED = {
    "users": (METHOD, "stream", "users"),
    "interval_s": (METHOD, "stream", "interval"),
    "chunks_for_success": (METHOD, "stream", "chunks_for_success"),
    "tool_calls": ("system", "tools requests", "tool_calls"),
    "stress_users": (RESULTS, "both", "stress_test_users"),
    "failures": (METHOD, "early end", "failures"),
}
WHOLE = ("users", "chunks_for_success", "tool_calls", "stress_users", "failures")
MINUTE_S = 60.0
# An answer of about 10 s, so that a 20 s cycle has streams under way half of its time.
ANSWER = {"tokens": 200, "token_rate": 20.0, "first_token_ms": 300.0}


def published_settings() -> dict[str, Any]:
    """Return the parameters that the preset sets."""
    found: dict[str, Any] = {
        name: published_value(STUDY, *place) for name, place in PUBLISHED.items()
    }
    found |= {name: int(found[name]) for name in WHOLE}
    length_s = MINUTE_S * published_value(STUDY, METHOD, "all", "run_duration")
    # One cycle of every user goes ahead, which is when they join.
    return {
        **found,
        **ANSWER,
        "warmup_s": found["interval_s"],
        "duration_s": length_s - found["interval_s"],
        "ramp_s": length_s,
        "limits": (512,),
        "timeout_s": 60.0,
        # Three cycles of every user; the first token is due after 300 ms.
        "probe_s": 3 * found["interval_s"],
        "objectives": ("ttft_p95<600ms", "gap_p99<200ms"),
    }
