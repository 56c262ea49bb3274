"""When is the chat service slow: latency against CPU, volume and logins, over time?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from perflab.experiments.experiment import Experiment
from perflab.recordings import Contrast
from perflab.systems.chat import service
from perflab.systems.chat.analysis.login_costs import COSTLY, FREE
from perflab.systems.chat.published_load import load_warnings
from perflab.systems.chat.responses import STEADY
from perflab.systems.chat.rungs import PERCENTILES
from perflab.systems.chat.service import ChatParameters, Codec, FirstDelay, Rung
from perflab.trials.plan import Treatment

# Delays with which users log in while others already send.
OVERLAPPING = ("action", *service.SCHEDULED)
APART = "with this first_delay all logins are over before the first message"
SOURCE = "chat study, published results (JSON, with login against no login load)"


class LatencyCpuParameters(ChatParameters):
    """Parameters of the study of latency and CPU.

    The two treatments differ only in what a login costs: hashing passwords, or comparing them as
    they are. With ``first_delay`` ``action``, as published, or ``scheduled`` or ``staggered``
    users log in while others already send. Only with the last two do costly logins leave the
    instants of messages as they are: see :class:`~perflab.systems.chat.service.Rung`.
    """

    users: int = Field(default=250, ge=2, le=10_000, description="users of the chat service")
    codec: Codec = Field(default="json", description="how a message is turned into bytes")
    loop: Literal["asyncio", "uvloop"] = Field(
        default="asyncio", description="the service's event loop"
    )
    deflate: Literal["on", "off"] = Field(
        default="on", description="whether messages are compressed (permessage-deflate)"
    )
    websocket: Literal["websockets", "websockets-sansio"] = Field(
        default="websockets", description="Uvicorn's implementation of WebSockets"
    )
    login_hash: Literal["bcrypt", "argon2"] = Field(
        default="bcrypt", description="how passwords are hashed where logins are costly"
    )
    first_delay: FirstDelay = Field(
        default="action",
        description="when a user first acts: one action_s after the login, as published (action), "
        "or after it was due (scheduled, staggered: evenly spread); after the time that all joins "
        "take (scaled); or once all have joined (together, spread: evenly)",
    )
    login_rounds: tuple[Annotated[int, Field(ge=4, le=16)], ...] = Field(
        default=(),
        description="further costs of a login to measure, as bcrypt_rounds counts them: what "
        "logins cost as a curve",
    )

    @model_validator(mode="after")
    def _has_rounds(self) -> LatencyCpuParameters:
        if self.login_rounds and self.login_hash != "bcrypt":
            raise ValueError(f"login_rounds are bcrypt's; login_hash is {self.login_hash}")
        return self


def _rungs(parameters: LatencyCpuParameters) -> dict[str, Rung]:
    own = {name: getattr(parameters, name) for name in ("codec", "loop", "deflate", "websocket")}
    hashed = Rung(
        **own,
        users=parameters.users,
        serialize="per_send",
        login_hash=parameters.login_hash,
        first_delay=parameters.first_delay,
        pings=parameters.pings,
    )
    more = [each for each in parameters.login_rounds if each != parameters.bcrypt_rounds]
    return {
        COSTLY: hashed,
        FREE: hashed.model_copy(update={"login_hash": "none"}),
        **{
            f"{COSTLY}_{rounds}": hashed.model_copy(update={"bcrypt_rounds": rounds})
            for rounds in more
        },
    }


def _treatments(parameters: LatencyCpuParameters) -> list[Treatment]:
    return service.treatments(parameters, _rungs(parameters))


def _contrasts(parameters: LatencyCpuParameters) -> list[Contrast]:
    # No published sizes: the study's percentiles are of pings, and what a login costs is a function
    # of the password hash, which it does not name.
    sides = {
        "numerator": {"rung": COSTLY},
        "denominator": {"rung": FREE},
        "not_testable": "" if parameters.first_delay in OVERLAPPING else APART,
    }
    latency = [
        Contrast(
            name=f"logins, p{share}",
            claim=f"logins under way raise latency (p{share})",
            response=f"delivery_p{share}_ms",
            published_direction="greater",
            source=SOURCE,
            **sides,
        )
        for share in PERCENTILES
    ]
    joining = [
        Contrast(
            name=f"logins, p{share} while users join",
            claim=f"latency rises while logins run (p{share} of what is sent while users join)",
            response=f"join_p{share}_ms",
            published_direction="greater",
            source="chat study, published figures (latency spikes while logins run)",
            **sides,
        )
        for share in PERCENTILES
    ]
    cpu = Contrast(
        name="logins, CPU",
        claim="logins cost 70 points of CPU while users join",
        response="join_cpu_share_chat",
        scale="difference",
        published_direction="greater",
        source="chat study, claim 6",
        **sides,
    )
    return [cpu, *joining, *latency]


# A crowd that grows within seconds to what a core can just serve: far from the published load.
SHORT = {
    "blocks": 2, "users": 80, "join_s": 0.05, "action_s": 1.0, "plateau_s": 3.0,
    "bcrypt_rounds": 8,
}  # fmt: skip

EXPERIMENT = Experiment(
    name="latency_cpu",
    title="Chat: latency against CPU, volume and logins",
    question="From which CPU share on is the chat service slow, what do logins add, and how does "
    "volume grow with the users?",
    parameters=LatencyCpuParameters,
    main_job=SHORT,
    steady=STEADY,
    treatments=_treatments,
    factors=lambda parameters: service.factors(parameters, _rungs(parameters)),
    contrasts=_contrasts,
    warnings=lambda parameters: load_warnings(parameters, _rungs(parameters)),
)
