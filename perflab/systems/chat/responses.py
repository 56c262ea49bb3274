"""The responses of the chat service.

Deliveries of messages are its measure; its requests are logins, except in the codec microbenchmark.
"""

from __future__ import annotations

from perflab.recordings import Response, Steady
from perflab.recordings.responses import CPU, MEMORY, PHASES, PROFILE, REQUESTS
from perflab.statistics.quantiles import OF_TRIALS

STEADY = Steady(kind="delivery")
_TYPICAL_PINGS = (50, 90)


def _latency(name: str, what: str, typical: tuple[int, ...] = ()) -> tuple[Response, ...]:
    return tuple(
        Response(
            name=f"{name}_p{share}_ms", title=f"p{share} of {what}", unit="ms",
            heading=f"{name} p{share} ms", noun="latency", better="less",
            typical=share in typical,
        )
        for share in OF_TRIALS
    )  # fmt: skip


RESPONSES = (
    Response(
        name="messages_per_s", title="messages per second", unit="messages/s",
        heading="messages/s", noun="messages delivered", better="more", typical=True,
    ),
    *_latency("delivery", "the delivery latency", typical=OF_TRIALS),
    *_latency("plateau", "the delivery latency while all users act"),
    *_latency("join", "the delivery latency while users join"),
    *_latency(
        "all_ping", "all pings of a trial, silent times included, as published",
        typical=_TYPICAL_PINGS,
    ),
    Response(
        name="cpu_us_per_message", title="CPU time per message", unit="us",
        heading="CPU us per message", noun="CPU per message", better="less", typical=True,
    ),
    Response(
        name="wire_bytes_per_message", title="bytes on the wire per message", unit="bytes",
        heading="wire bytes", noun="bytes per message", better="less",
    ),
    Response(
        name="wire_share", title="bytes on the wire over those of the messages", noun="bytes",
        better="less",
    ),
    Response(
        name="wire_mbit_per_s", title="what a link had to carry while all users act",
        unit="Mbit/s", heading="wire Mbit/s", noun="bytes on the wire", typical=True,
    ),
    # Trials begin with minutes of joining, so the plateau's share is the one that counts.
    Response(
        name="plateau_cpu_share_*", title="CPU cores that * uses while all users act",
        unit="cores", heading="CPU *", noun="CPU of *", typical=True,
    ),
    Response(
        name="join_cpu_share_*", title="CPU cores that * uses while users join", unit="cores",
        noun="CPU of *",
    ),
    Response(
        name="beside_loop_cpu_share_*",
        title="CPU cores that threads of * other than the event loop use", unit="cores",
        noun="CPU beside the loop of *",
    ),
    # The service reports the time of 1000 operations in ms: that number is the us of one.
    Response(
        name="phase_op_p50_ms", title="median time of op", unit="us", noun="time per operation",
        better="less",
    ),
    *REQUESTS,
    *PHASES,
    *(share.model_copy(update={"typical": False}) for share in CPU),
    *MEMORY,
    *PROFILE,
)  # fmt: skip
