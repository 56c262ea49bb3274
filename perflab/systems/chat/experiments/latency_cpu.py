"""When is the chat service slow: latency against CPU, volume and logins, over time?"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from perflab.recordings import Contrast
from perflab.systems.chat import stacks
from perflab.systems.chat.responses import STEADY
from perflab.systems.chat.rungs import COSTLY, FREE, PERCENTILES
from perflab.systems.chat.stacks import ChatParameters, Rung
from perflab.trials.experiment import Experiment


class LatencyCpuParameters(ChatParameters):
    """Parameters of the study of latency and CPU.

    The two treatments differ only in the cost of a login: the service hashes passwords, or compares
    them as they are. Users log in while others already send. Costly logins shift the instants of
    messages unless ``first_delay`` is ``scheduled``.
    """

    users: int = Field(default=250, ge=2, le=10_000, description="users of the chat service")
    first_delay: Literal["action", "scheduled"] = Field(
        default="action",
        description="when a user first acts: one action_s after the login, as published (action), "
        "or after it was due (scheduled)",
    )


def _rungs(parameters: LatencyCpuParameters) -> dict[str, Rung]:
    hashed = Rung(users=parameters.users, serialize="per_send", first_delay=parameters.first_delay)
    return {COSTLY: hashed, FREE: hashed.model_copy(update={"login_hash": "none"})}


def _contrasts(_: LatencyCpuParameters) -> list[Contrast]:
    # There are no published sizes: the study's percentiles are of pings, and the cost of a login
    # depends on the password hash, which the study does not name.
    logins: dict[str, Any] = {
        "numerator": {"rung": COSTLY}, "denominator": {"rung": FREE},
        "published_direction": "greater",
    }  # fmt: skip
    cpu = Contrast(
        name="logins, CPU",
        claim="logins cost 70 points of CPU while users join",
        response="join_cpu_share_chat",
        scale="difference",
        source="chat study, claim 6",
        asks="do logins slow the chat?",
        subject="CPU",
        **logins,
    )
    joining = [
        Contrast(
            name=f"logins, p{share} while users join",
            claim=f"latency rises while logins run (p{share} of what is sent while users join)",
            response=f"join_p{share}_ms",
            source="chat study, published figures (latency spikes while logins run)",
            **logins,
        )
        for share in PERCENTILES
    ]
    latency = [
        Contrast(
            name=f"logins, p{share}",
            claim=f"logins under way raise latency (p{share})",
            response=f"delivery_p{share}_ms",
            source="chat study, published results (JSON, with login against no login load)",
            asks="do logins slow the chat?" if share == 90 else "",
            subject=f"p{share} of the latency",
            **logins,
        )
        for share in PERCENTILES
    ]
    return [cpu, *joining, *latency]


# Within seconds this crowd grows to what one core can just serve; the published load is far less.
SHORT = {
    "blocks": 6, "users": 80, "join_s": 0.04, "action_s": 1.0, "plateau_s": 2.0,
    "bcrypt_rounds": 8,
}  # fmt: skip

EXPERIMENT = Experiment(
    name="latency_cpu",
    title="Chat: latency against CPU, volume and logins",
    question="From which CPU share on is the chat service slow, and what do logins add?",
    parameters=LatencyCpuParameters,
    main_job=SHORT,
    steady=STEADY,
    treatments=lambda parameters: stacks.treatments(parameters, _rungs(parameters)),
    contrasts=_contrasts,
)
