"""The views of the chat service's runs: crowds, codecs and profiles."""

from __future__ import annotations

from perflab.figures import EFFECT, PROFILE
from perflab.systems.chat.figures.codec_cost import CODEC_COST
from perflab.systems.chat.figures.delivery import BURSTS, DELIVERY_CPU, DELIVERY_VOLUME
from perflab.systems.chat.figures.ladder import LADDER, LOGIN_BANDS, PINGED
from perflab.systems.chat.figures.stream_timeline import STREAM_TIMELINE
from perflab.systems.chat.figures.users_held import TARGETS_MET, USERS_HELD

VIEWS = (
    EFFECT, CODEC_COST, LADDER, PINGED, TARGETS_MET, USERS_HELD, BURSTS, DELIVERY_CPU,
    STREAM_TIMELINE, LOGIN_BANDS, DELIVERY_VOLUME, PROFILE,
)  # fmt: skip
