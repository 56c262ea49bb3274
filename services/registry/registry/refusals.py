"""What a request can be refused for, and how faults of the store become that."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import botocore.exceptions as boto
from aiohttp import ClientError as AsyncClientError
from urllib3.exceptions import HTTPError

STORE, DATABASE = "the object store", "the database of metadata"
RETRY_AFTER_S = 1
log = logging.getLogger("registry")

_DOWN = (
    boto.EndpointConnectionError,
    boto.ConnectTimeoutError,
    boto.ReadTimeoutError,
    boto.ConnectionClosedError,
)
_BROKEN = (boto.BotoCoreError, boto.ClientError, HTTPError, AsyncClientError, OSError)


class Refused(Exception):
    """A request that is answered with a status, a code and a reason."""

    status = 500
    code = "refused"

    @property
    def headers(self) -> dict[str, str]:
        """Return what the answer says beside its status."""
        return {"Retry-After": str(RETRY_AFTER_S)} if self.status == 503 else {}


class BadName(Refused):
    """A model id or version that none can have."""

    status, code = 422, "bad_name"


class UnknownModel(Refused):
    """The registry has no such model."""

    status, code = 404, "unknown_model"


class StoreDown(Refused):
    """The store or the database does not answer: ask again."""

    status, code = 503, "store_down"


class StoreBroken(Refused):
    """The store answers, but not with the model."""

    status, code = 502, "store_broken"


class UnknownRun(Refused):
    """No run of that name is kept."""

    status, code = 404, "unknown_run"


class UnderWay(Refused):
    """Something goes on that must end before."""

    status, code = 409, "under_way"


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise StoreDown or StoreBroken for what a client's library raises; ``what`` was asked."""
    try:
        yield
    except _DOWN as error:
        log.warning("%s: no answer (%s)", what, type(error).__name__)
        raise StoreDown(f"{what} does not answer; try again") from None
    except _BROKEN as error:
        log.warning("%s: %s", what, error)
        raise StoreBroken(f"{what} refuses or broke off its answer") from None
