"""Gives each request of a load its turn in a mix, from a seeded sequence."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from perflab.load.clients.exchange import Exchange, Prepared, render
from perflab.load.clients.targets import Origin
from perflab.load.workload.mix import Weighted, fill_of, has_placeholders
from perflab.load.workload.request import Connections, Request

AT_ONCE = 1024


class Mixer:
    """Chooses the request of each exchange by the weights of a mix.

    The sequence of names, and of the values of each name but UUIDs, is that of the seed, however
    fast the server answers; each worker has its own. A fixed request is rendered once.
    """

    def __init__(self, mix: Sequence[Weighted], origin: Origin, life: Connections, seed: str):
        self._bounds = [*accumulate(item.weight for item in mix)]
        self._prepared = [Prepared(item.request, origin, life) for item in mix]
        for item, prepared in zip(mix, self._prepared, strict=True):
            if has_placeholders(item.request):
                numbers = random.Random(f"{seed}:{item.name}")
                prepared.turn = filled_by(item.request, origin, life.closing, numbers)
        self._next = self._order(random.Random(seed))

    def _order(self, numbers: random.Random) -> Iterator[int]:
        codes = range(len(self._prepared))
        while True:
            yield from numbers.choices(codes, cum_weights=self._bounds, k=AT_ONCE)

    def before(self, submit: Callable[[Exchange], None]) -> Callable[[Exchange], None]:
        """Return what submits an exchange with the request whose turn it is."""

        def choose(exchange: Exchange) -> None:
            code = next(self._next)
            exchange.template, exchange.prepared = code, self._prepared[code]
            submit(exchange)

        return choose


def filled_by(
    request: Request, origin: Origin, closing: bool, numbers: random.Random
) -> Callable[[int], bytes]:
    """Return what gives the bytes of a user's next request, whose placeholders differ each time."""
    fill = fill_of(request)

    def for_user(user: int) -> bytes:
        path, headers, body = fill(numbers, user)
        filled = request.model_construct(
            **{**request.__dict__, "path": path, "headers": headers, "body": body}
        )
        return render(filled, filled.bodies[0], origin, closing)

    return for_user
