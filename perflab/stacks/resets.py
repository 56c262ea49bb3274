"""Asks services to forget what a load left in them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from perflab.errors import HookFailed, ServiceFailed, StackError
from perflab.stacks.asking import exchange
from perflab.stacks.backend import Instance
from perflab.stacks.commands import Interrupted, go_on
from perflab.stacks.starting import CAUSE_SEEN_WITHIN_S, refuse_dead

BUSY = 409
ASK_AGAIN_S = 0.1
# Also the last time it is asked, on a machine that others use.
LEAST_TIMEOUT_S = 2.0
SHOWN_CHARACTERS = 500
# A service notices that a user has vanished only when its keep-alive went unanswered.
RESET_WITHIN_S = 45.0


def forget(node: str, instance: Instance, interrupted: Interrupted) -> None:
    """Reset a service after the last trial, by the POST that its description names, if any.

    A service that answers 409 is busy with that, and is asked again for ``RESET_WITHIN_S``. Raises
    as :func:`named` does.
    """
    path = instance.launch.spec.reset
    if not path:
        return
    what = f"reset of node '{node}' (POST {path})"
    port, deadline = instance.launch.control_port, time.monotonic() + RESET_WITHIN_S
    with named(what, instance):
        while True:
            left_s = max(LEAST_TIMEOUT_S, deadline - time.monotonic())
            status, text = exchange(port, "POST", path, None, left_s)
            if 200 <= status < 300:
                return
            if status != BUSY or time.monotonic() > deadline:
                raise StackError(f"answered {status}: '{text.strip()[:SHOWN_CHARACTERS]}'")
            go_on(interrupted, f"during the {what}")
            time.sleep(ASK_AGAIN_S)


@contextlib.contextmanager
def named(what: str, instance: Instance) -> Iterator[None]:
    """Raise HookFailed, with the step ``what``, where the block fails; ServiceFailed by a death."""
    try:
        yield
    except StackError as error:
        # The end of the service may be visible a little later.
        time.sleep(CAUSE_SEEN_WITHIN_S)
        refuse_dead({instance.launch.labels.service: instance})
        problem = error.reason if isinstance(error, ServiceFailed) else str(error)
        raise HookFailed(f"{what}: {problem}") from None
