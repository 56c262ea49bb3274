"""What goes wrong at the store, as what the client is told."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import botocore.exceptions as boto
from aiohttp import ClientError as AsyncClientError
from urllib3.exceptions import HTTPError

from registry.refusal import ClientGone, StoreBroken, StoreDown
from registry.store.pools import borrower

log = logging.getLogger("registry")

_DOWN = (
    boto.EndpointConnectionError,
    boto.ConnectTimeoutError,
    boto.ReadTimeoutError,
    boto.ConnectionClosedError,
)
_BROKEN = (boto.BotoCoreError, HTTPError, AsyncClientError, OSError)
# What S3 and DynamoDB answer when they are there but cannot serve now.
_LATER = {500, 503, 507}


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise StoreDown or StoreBroken for what a client's library raises; ``what`` was asked.

    The library's own words are not passed on: they may hold an address with its signature. Where
    whoever asked has gone, and the connection was cut for that, it is ClientGone instead.
    """
    try:
        with _while_there():
            yield
    except boto.ClientError as error:
        raise _refused(what, error) from None
    except _DOWN as error:
        log.warning("%s: no answer (%s)", what, type(error).__name__)
        raise StoreDown(f"{what} does not answer; try again") from None
    except (TimeoutError, *_BROKEN) as error:
        log.warning("%s: broken off (%s)", what, type(error).__name__)
        raise StoreBroken(f"{what} broke off its answer") from None


@contextmanager
def _while_there() -> Iterator[None]:
    try:
        yield
    except Exception:
        asking = borrower.get()
        if asking is not None and asking.gone:
            raise ClientGone from None
        raise


def _refused(what: str, error: boto.ClientError) -> StoreDown | StoreBroken:
    answer = error.response
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = str(answer.get("Error", {}).get("Code", ""))[:60]
    log.warning("%s: answered %s %s", what, status, code)
    if status in _LATER:
        return StoreDown(f"{what} cannot serve now ({status}); try again")
    return StoreBroken(f"{what} refuses ({status} {code})")
