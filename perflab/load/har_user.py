"""A user who sends what a browser recorded, in its order, again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from perflab.load.har import Choice, Recording, read
from perflab.load.prepared import Prepared
from perflab.load.targets import Origin
from perflab.load.users import User, action

HAR_USER = f"{__name__}:HarUser"


@cache
def _recording(choice: Choice) -> Recording:
    """Read the file once for all users of a worker."""
    return read(choice)


class HarUser(User):
    """Sends the requests of a HAR one after another; its parameters are a ``har.Choice``."""

    def __init__(self, number: int, seed: int, parameters: Mapping[str, Any]) -> None:
        super().__init__(number, seed, parameters)
        self._recording = _recording(Choice(**parameters))
        self._prepared: list[Prepared] = []

    def origins(self) -> Sequence[Origin]:
        """Return where it sends to."""
        return self._recording.origins

    @action
    async def visit(self) -> None:
        """Send every request once."""
        for place, each in enumerate(self._recording.requests):
            if each.pause_s and not await self.pause(each.pause_s):
                return
            if place == len(self._prepared):
                made = Prepared(each.request, each.origin, self._driver.life)
                made.want_answer(keep_body=False)
                self._prepared.append(made)
            await self.perform(self._prepared[place], self._recording.name_of(each))
