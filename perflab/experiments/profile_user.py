"""The user of the profiled chat server: sends a message at a pace, and asks for the health.

What it hears is counted, not decoded, so that the client costs the same with every codec; JSON
frames are read by the service whatever codec it writes.
"""

from __future__ import annotations

import json

from perflab.load.messages import RECEIVED, SENT
from perflab.load.users import User, action

PASSWORD = "correct horse"
TEXT = "Did anyone look at the latency of the second node? It doubled at noon; see the chart."


class Talker(User):
    """Logs in, connects, and then talks every ``interval_s`` seconds."""

    async def on_start(self) -> None:
        """Log in and connect."""
        self.pacing_s = float(self.parameters["interval_s"])
        account = {"user": f"user{self.number}", "password": PASSWORD}
        login = (await self.post("/login", account, name="login")).json()
        self._channels = login["channels"]
        self._socket = await self.websocket(
            f"/ws?token={login['token']}",
            lambda data, at_ns: self.note(RECEIVED, len(data), at_ns),
            deflate=bool(self.parameters["deflate"]),
        )

    @action
    async def talk(self) -> None:
        """Send a request that waits in the service's event loop, and a message to a channel."""
        # First what is timed: whatever stands before it would pass for the client's lateness.
        await self.get("/health", name="health")
        channel = self.random.choice(self._channels)
        words = json.dumps({"kind": "send", "channel": channel, "text": TEXT}).encode()
        self.note(SENT, len(words), self._socket.send(words))

    async def on_stop(self) -> None:
        """Leave in order."""
        await self._socket.close()
