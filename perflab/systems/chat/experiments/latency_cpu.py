"""When is the chat service slow: latency against CPU, volume and logins, over time?"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perflab.recordings import Contrast
from perflab.systems.chat import stacks
from perflab.systems.chat.rungs import CONTRASTS, COSTLY, FREE
from perflab.systems.chat.stacks import STUDY, ChatParameters, Rung
from perflab.trials.experiment import Experiment
from perflab.trials.ladders import having

# Within seconds this crowd grows to most of what a core can serve; the published load is far less.
# Its users act one by one, and each message goes to many: the sender's own lateness, which is the
# same for one listener and for a hundred, is then a small part of a delivery.
SHORT = {
    "blocks": 6, "users": 140, "join_s": 0.023, "action_s": 1.5, "plateau_s": 1.5,
    "bcrypt_rounds": 8,
}  # fmt: skip


class LatencyCpuParameters(ChatParameters):
    """Parameters of the study of latency and CPU.

    The two treatments differ only in the cost of a login: the service hashes passwords, or compares
    them as they are. Users log in while others already send. With ``first_delay`` ``action`` costly
    logins also shift the instants of messages, which lowers latency.
    """

    users: int = Field(default=250, ge=2, le=10_000, description="users of the chat service")
    first_delay: Literal["action", "scheduled"] = Field(
        default="scheduled",
        description="when a user first acts: one action_s after the login was due (scheduled), or "
        "after its end, as published (action): costly logins then move users off the others' beat",
    )


def _rungs(parameters: LatencyCpuParameters) -> dict[str, Rung]:
    hashed = Rung(users=parameters.users, serialize="per_send", first_delay=parameters.first_delay)
    return {COSTLY: hashed, FREE: hashed.model_copy(update={"login_hash": "none"})}


def _contrasts(parameters: LatencyCpuParameters) -> list[Contrast]:
    # There are no published sizes: the study's percentiles are of pings, and the cost of a login
    # depends on the password hash, which the study does not name.
    return having((row.contrast(STUDY, sized=False) for row in CONTRASTS), _rungs(parameters))


EXPERIMENT = Experiment(
    name="latency_cpu",
    title="Chat: latency against CPU, volume and logins",
    question="From which CPU share on is the chat service slow, and what do logins add?",
    parameters=LatencyCpuParameters,
    main_job=SHORT,
    pictures=("delivery_cpu", "effect"),
    treatments=lambda parameters: stacks.treatments(parameters, _rungs(parameters)),
    contrasts=_contrasts,
)
