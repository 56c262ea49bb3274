"""The views of the chat's runs."""

from __future__ import annotations

from perflab.figures import EFFECT, PROFILE
from perflab.systems.chat.codec_costs import CODEC_COST
from perflab.systems.chat.delivery_cpu import DELIVERY_CPU
from perflab.systems.chat.delivery_volume import DELIVERY_VOLUME
from perflab.systems.chat.ladder import LADDER, PINGED
from perflab.systems.chat.login_bands import LOGIN_BANDS
from perflab.systems.chat.users_held import USERS_HELD
from perflab.systems.chat.windows import STREAM_TIMELINE

VIEWS = (
    EFFECT, CODEC_COST, LADDER, PINGED, USERS_HELD, DELIVERY_CPU,
    STREAM_TIMELINE, LOGIN_BANDS, DELIVERY_VOLUME, PROFILE,
)  # fmt: skip
