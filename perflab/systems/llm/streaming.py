"""Loads of streams on the proxy: their treatments and factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perflab.instruments import (
    STANDARD,
    Chunks,
    FailureThreshold,
    Instrument,
    Requests,
    UsersHeld,
)
from perflab.load.workload import ClosedLoop, Objective, StopRules, Workload
from perflab.recordings import Remark
from perflab.stacks.plan import StackPlan
from perflab.systems.llm.parameters import StreamingParameters, rungs
from perflab.systems.llm.rungs import MODES, Rung
from perflab.systems.llm.service import request, stack
from perflab.systems.llm.stream_cost import BrokenOff, StreamCost
from perflab.trials.ladders import Ladder

PROXY = "proxy"
# Two descriptors for a stream, and two for connections that are idle or about to close.
FILES_OF_A_USER, SPARE_FILES = 4, 256
# So fast that the proxy takes most of the time.
FAST_TOKEN_RATE = 2000.0
# A search begins with this many users, and finds its answer to within this share.
SEARCH_START, SEARCH_TOLERANCE = 40, 0.05


def levels(parameters: StreamingParameters, rung: Rung) -> Mapping[str, object]:
    """Return a rung's levels beside its name."""
    return {
        "version": rung.version,
        "kind": rung.kind,
        "pacing": f"{parameters.interval_s:.12g} s" if rung.is_paced else "none",
        "token_rate": _token_rate(parameters, rung),
        "max_files": rung.max_files or "enough",
        "users": users(parameters, rung),
    }


def users(parameters: StreamingParameters, rung: Rung) -> int:
    """Return the most users that a rung's own load has at a time."""
    return parameters.stress_users if rung.is_ramp else parameters.users


def _token_rate(parameters: StreamingParameters, rung: Rung) -> float:
    return FAST_TOKEN_RATE if rung.is_fast else parameters.token_rate


def _stack(parameters: StreamingParameters, rung: Rung) -> StackPlan:
    """Return the proxy and a model that has room for all users, also those of a search."""
    searched = parameters.search_most if rung.is_search else 0
    enough = SPARE_FILES + FILES_OF_A_USER * max(users(parameters, rung), searched)
    return stack(
        {"mode": MODES[rung.version], "max_files": rung.max_files or enough},
        upstream={
            "tokens": parameters.tokens,
            "token_rate": _token_rate(parameters, rung),
            "first_token_ms": parameters.first_token_ms,
            "tool_calls": parameters.tool_calls,
            "max_files": enough,
        },
    )


def instruments(parameters: StreamingParameters, rung: Rung) -> tuple[Instrument, ...]:
    """Return the instruments of a rung: a ramp is not steady, and a batch has no chunks."""
    own: list[Instrument] = [StreamCost(node=PROXY)]
    if rung.kind != "batch":
        own.append(Chunks())
    if rung.is_search:
        search = UsersHeld(
            objectives=tuple(map(Objective.of_text, parameters.objectives)),
            start=SEARCH_START,
            most=parameters.search_most,
            tolerance=SEARCH_TOLERANCE,
            probe_s=parameters.probe_s,
            warmup_s=parameters.interval_s,
        )
        # The search comes first, so that the probe of the CPU's speed is right before the load.
        return (search, *STANDARD, *own)
    if not rung.is_ramp:
        return (*STANDARD, *own)
    others = [instrument for instrument in STANDARD if not isinstance(instrument, Requests)]
    return (Requests(steady=False), *others, *own, FailureThreshold(), BrokenOff())


def workload(parameters: StreamingParameters, rung: Rung) -> Workload:
    """Return a rung's load: paced users, users without pacing, or a ramp of users."""
    return Workload(
        request=request(rung.kind, PROXY, parameters.chunks_for_success + 1, parameters.tool_calls),
        arrivals=_ramp(parameters) if rung.is_ramp else _fixed(parameters, rung),
        timeout_s=parameters.timeout_s,
        stop=StopRules(failures=parameters.failures if rung.is_ramp else 0),
    )


def _fixed(parameters: StreamingParameters, rung: Rung) -> ClosedLoop:
    return ClosedLoop(
        users=parameters.users,
        duration_s=parameters.duration_s,
        warmup_s=parameters.warmup_s,
        # Users who join together would send together in every cycle.
        ramp_s=min(parameters.warmup_s, parameters.interval_s),
        pacing_s=parameters.interval_s if rung.is_paced else 0.0,
        max_duration_s=parameters.warmup_s + parameters.duration_s + parameters.timeout_s,
    )


def _ramp(parameters: StreamingParameters) -> ClosedLoop:
    """Return a ramp of users, who join evenly one after the other."""
    return ClosedLoop(
        users=parameters.stress_users,
        duration_s=parameters.ramp_s,
        ramp_s=parameters.ramp_s,
        pacing_s=parameters.interval_s,
        max_duration_s=parameters.ramp_s + parameters.timeout_s,
    )


LADDER = Ladder(levels, _stack, workload, instruments)


def remarks_on(parameters: StreamingParameters) -> Sequence[Remark]:
    """Return remarks for readers of the plan on success, the failure threshold and capacity."""
    least = parameters.chunks_for_success
    text = (
        f"a stream succeeds with its last event and more than {least} chunks, which are counted and"
        " not parsed; the model is a stand-in that sends tokens by a schedule, so that how long an"
        " answer lasts is mostly set by that"
    )
    remarks = [Remark(code="llm.success", text=text)]
    of_run = rungs(parameters).values()
    if any(rung.is_ramp for rung in of_run):
        text = (
            f"users join until {parameters.failures} requests have failed; what is under way then"
            " goes on to its end and is in no time and no throughput"
        )
        remarks.append(Remark(code="llm.threshold", text=text))
    if any(rung.is_search for rung in of_run):
        text = (
            f"capacity is the most users that hold {' and '.join(parameters.objectives)}; versions"
            f" that are less than {SEARCH_TOLERANCE:.3g} apart may get the same number"
        )
        remarks.append(Remark(code="llm.capacity", text=text))
    return remarks
