"""How faults of the store become refusals."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import botocore.exceptions as boto
from aiohttp import ClientError as AsyncClientError
from specimen.refusal import Refused
from urllib3.exceptions import HTTPError

STORE, DATABASE = "the object store", "the database of metadata"
log = logging.getLogger("registry")

_DOWN = (
    boto.EndpointConnectionError,
    boto.ConnectTimeoutError,
    boto.ReadTimeoutError,
    boto.ConnectionClosedError,
)
_BROKEN = (boto.BotoCoreError, boto.ClientError, HTTPError, AsyncClientError, OSError)


def unknown_model(reason: str) -> Refused:
    """Return the refusal of a model that the registry does not have."""
    return Refused(404, "unknown_model", reason)


def store_broken(reason: str) -> Refused:
    """Return the word for a store that answers, but not with the model."""
    return Refused(502, "store_broken", reason)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise Refused for what a client's library raises; ``what`` was asked."""
    try:
        yield
    except _DOWN as error:
        log.warning("%s: no answer (%s)", what, type(error).__name__)
        raise Refused(503, "store_down", f"{what} does not answer; try again") from None
    except _BROKEN as error:
        log.warning("%s: %s", what, error)
        raise store_broken(f"{what} refused the request or broke its answer off") from None
