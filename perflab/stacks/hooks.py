"""Fill services, reset them between trials, and count what a load has left in them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from perflab.errors import HookFailed, ServiceFailed, StackError
from perflab.stacks.backend import Instance, Interrupted, go_on
from perflab.stacks.launching import CAUSE_SEEN_WITHIN_S, exchange, refuse_dead
from perflab.stacks.plan import Seed
from perflab.stacks.settings import Database

BUSY = 409
ASK_AGAIN_S = 0.1
SHOWN_CHARACTERS = 500
# A service notices that a user has vanished only when its keep-alive went unanswered.
RESET_WITHIN_S = 45.0


def fill(seed: Seed, instance: Instance, interrupted: Interrupted) -> None:
    """Run the command that fills a service.

    Raises HookFailed, with the output, where it failed or took too long, and ServiceFailed where
    the service has died.
    """
    with _named(f"seed of node '{seed.node}'", instance):
        instance.run(seed.command, seed.timeout_s, interrupted)


def forget(node: str, instance: Instance, interrupted: Interrupted) -> None:
    """Reset a service after the last trial, by the POST that its description names, if any.

    A service that answers 409 is busy with that, and is asked again for ``RESET_WITHIN_S``. Raises
    as :func:`fill` does.
    """
    reset = instance.launch.spec.reset
    if reset is None:
        return
    what = f"reset of node '{node}' (POST {reset.http})"
    port, deadline = instance.launch.control_port, time.monotonic() + RESET_WITHIN_S
    with _named(what, instance):
        while True:
            left_s = max(ASK_AGAIN_S, deadline - time.monotonic())
            status, text = exchange(port, "POST", reset.http, None, left_s)
            if 200 <= status < 300:
                return
            if status != BUSY or time.monotonic() > deadline:
                raise StackError(f"answered {status}: '{text.strip()[:SHOWN_CHARACTERS]}'")
            go_on(interrupted, f"during the {what}")
            time.sleep(ASK_AGAIN_S)


def empty(statements: Sequence[str], database: Database, instance: Instance) -> None:
    """Run the statements that empty a database; raises as :func:`fill` does."""
    with _named(f"reset of the database ({'; '.join(statements)})", instance):
        for statement in statements:
            database.rows(statement)


def counted(query: str, database: Database, instance: Instance) -> int:
    """Return the number that a query selects; raises as :func:`fill` does."""
    with _named(f"count of the database ({query})", instance):
        return int(database.rows(query)[0][0])


@contextlib.contextmanager
def _named(what: str, instance: Instance) -> Iterator[None]:
    """Name the step ``what`` in an error, unless the cause is that the service has ended."""
    try:
        yield
    except StackError as error:
        # The end of the service may be visible a little later.
        time.sleep(CAUSE_SEEN_WITHIN_S)
        refuse_dead({instance.launch.labels.service: instance})
        problem = error.reason if isinstance(error, ServiceFailed) else str(error)
        raise HookFailed(f"{what}: {problem}") from None
