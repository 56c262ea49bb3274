"""Functions that a worker's event loop carries out at once, asked for without the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from perflab.errors import LoadError

LONGEST_S = 30.0


async def called(client: Any, address: str, function: Callable[..., Any], *words: Any) -> Any:
    """Have the worker at an address carry a function out, and return its result.

    Not ``client.run``: that goes by way of the scheduler, which would double the trip of a clock's
    reading and carry every raw row.

    Raises
    ------
    OSError, TimeoutError
        The worker cannot be reached, or does not answer.
    """
    from distributed.core import clean_exception
    from distributed.protocol.pickle import dumps

    asked = client.rpc(address).run(
        function=dumps(function), args=dumps(words), kwargs=dumps({}), wait=True
    )
    answer = await asyncio.wait_for(asked, LONGEST_S)
    if answer["status"] == "error":
        _, error, _ = clean_exception(**answer)
        raise error if error is not None else LoadError(f"{address}: {answer}")
    return answer["result"]
