"""What is drawn of the runs of the chat service: of crowds, of codecs, of profiles."""

from __future__ import annotations

from perflab.figures import EFFECT, PROFILE
from perflab.systems.chat.figures.burst_model import BURSTS
from perflab.systems.chat.figures.codec_cost import CODEC_COST
from perflab.systems.chat.figures.delivery_cpu import DELIVERY_CPU
from perflab.systems.chat.figures.delivery_volume import DELIVERY_VOLUME
from perflab.systems.chat.figures.ladder import LADDER, PINGED
from perflab.systems.chat.figures.login_bands import LOGIN_BANDS
from perflab.systems.chat.figures.stream_timeline import STREAM_TIMELINE
from perflab.systems.chat.figures.target_shares import TARGETS_MET
from perflab.systems.chat.figures.users_held import USERS_HELD

VIEWS = (
    EFFECT, CODEC_COST, LADDER, PINGED, TARGETS_MET, USERS_HELD, BURSTS, DELIVERY_CPU,
    STREAM_TIMELINE, LOGIN_BANDS, DELIVERY_VOLUME, PROFILE,
)  # fmt: skip
