"""The store through boto3: every call holds its thread until it is answered."""

from __future__ import annotations

import threading
from typing import Any

import boto3
from botocore.config import Config

from registry.refusal import ClientGone, StoreBroken, UnknownModel
from registry.settings import Settings
from registry.store.credentials import database_endpoint, store_endpoint
from registry.store.faults import translated
from registry.store.metadata import Model, key_of, model_from
from registry.store.pools import Tally, count

CHUNK_BYTES = 256 * 1024
STORE, DATABASE = "the object store", "the database of metadata"


def options(settings: Settings) -> dict[str, Any]:
    """Return what the blocking and the async client are both told."""
    return {
        "max_pool_connections": settings.pool_connections,
        "retries": {"total_max_attempts": settings.retry_attempts, "mode": settings.retry_mode},
        "read_timeout": settings.read_timeout_s,
        "connect_timeout": settings.read_timeout_s,
        "signature_version": "s3v4",
        "s3": {"addressing_style": "path"},
    }


def database_options(settings: Settings) -> dict[str, Any]:
    """Return the same for the database, which signs in its own way."""
    kept = options(settings)
    return {name: kept[name] for name in kept if name not in ("signature_version", "s3")}


class BlockingStore:
    """Clients of both, shared by all threads, as boto3 allows."""

    def __init__(self, settings: Settings) -> None:
        self._bucket, self._table = settings.bucket, settings.table
        session = boto3.session.Session()
        at = store_endpoint(settings).client_options()
        self.objects = session.client("s3", **at, config=Config(**options(settings)))
        at = database_endpoint(settings).client_options()
        self.database = session.client(
            "dynamodb", **at, config=Config(**database_options(settings))
        )
        self.tally, self.database_tally = Tally(), Tally()
        count(self.objects, self.tally)
        count(self.database, self.database_tally)

    def find(self, model_id: str, version: str) -> Model:
        """Return what the database knows of a model."""
        with translated(DATABASE):
            answer = self.database.get_item(
                TableName=self._table, Key=key_of(model_id, version), ConsistentRead=True
            )
        return model_from(model_id, version, answer)

    def open(self, model: Model, first: int = 0, end: int | None = None) -> Body:
        """Ask for a model's file, or its bytes from ``first`` up to but not ``end``."""
        wanted = {} if end is None else {"Range": f"bytes={first}-{end - 1}"}
        length = model.size_bytes if end is None else end - first
        with translated(STORE):
            try:
                answer = self.objects.get_object(Bucket=self._bucket, Key=model.key, **wanted)
            except self.objects.exceptions.NoSuchKey:
                raise UnknownModel("the object store does not have this model's file") from None
        body = Body(answer["Body"], length)
        if answer["ContentLength"] != length:
            body.close()
            raise StoreBroken("the object store has another length than the metadata")
        return body

    def close(self) -> None:
        """Close what is kept open."""
        self.objects.close()
        self.database.close()


class Body:
    """The bytes of an answer: read by one thread at a time, closed from any."""

    def __init__(self, stream: Any, length: int) -> None:
        self.left = length
        self._stream = stream
        self._closed = False
        self._reading = threading.Lock()

    def chunk(self) -> bytes:
        """Return the next bytes; to be asked only while some are ``left``.

        Raises
        ------
        StoreBroken
            The store ended before all had come.
        StoreDown
            It was silent for too long.
        ClientGone
            The body was closed meanwhile, or nobody waits for it.
        """
        try:
            with self._reading:
                return self._next()
        finally:
            # Whoever closed it while this thread read has left the end to it.
            if self._closed:
                self.close()

    def _next(self) -> bytes:
        if self._closed:
            raise ClientGone
        with translated(STORE):
            data: bytes = self._stream.read(min(CHUNK_BYTES, self.left))
        if not data:
            raise StoreBroken(f"the object store ended {self.left} bytes too early")
        self.left -= len(data)
        return data

    def close(self) -> None:
        """Give the connection back, or close it where bytes are left; no more is read.

        A thread that reads ends it itself, when its connection has been cut.
        """
        self._closed = True
        if self._reading.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._reading.release()

    def _end(self) -> None:
        raw = self._stream._raw_stream
        if self.left:
            raw.close()
        raw.release_conn()
