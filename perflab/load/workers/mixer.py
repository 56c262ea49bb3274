"""Gives each request of a load its turn in a mix, from a seeded sequence."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

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
        self._values = [
            Values(item.request, origin, life, random.Random(f"{seed}:{item.name}"))
            if has_placeholders(item.request)
            else None
            for item in mix
        ]
        for prepared, values in zip(self._prepared, self._values, strict=True):
            if values is not None:
                prepared.turn = values
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
            values = self._values[code]
            if values is not None:
                values.user = exchange.user
            submit(exchange)

        return choose

    @staticmethod
    def write_names(mix: Sequence[Weighted], folder: Path) -> None:
        """Write the names of a mix, by code, beside the rows of a worker."""
        (folder / "templates.names").write_text("\n".join(item.name for item in mix))


class Values:
    """The bytes of a request whose placeholders differ each time; ``user`` is who sends it next."""

    def __init__(
        self, request: Request, origin: Origin, life: Connections, numbers: random.Random
    ) -> None:
        self.user = 0
        self._request, self._origin, self._closing = request, origin, life.closing
        self._fill, self._numbers = fill_of(request), numbers

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        path, headers, body = self._fill(self._numbers, self.user)
        request = self._request.model_construct(
            **{**self._request.__dict__, "path": path, "headers": headers, "body": body}
        )
        return render(request, request.bodies[0], self._origin, self._closing)
