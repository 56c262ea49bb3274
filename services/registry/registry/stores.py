"""The object store and the database of metadata, through a blocking and an async client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import boto3
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import get_session
from botocore.config import Config

from registry.counts import Counts, count_connections
from registry.metadata import BUCKET, TABLE, Model, key_of, model_from
from registry.refusals import DATABASE, STORE, store_broken, translated, unknown_model
from registry.settings import Settings

CHUNK_BYTES = 256 * 1024
SIGNING: Any = {"signature_version": "s3v4", "s3": {"addressing_style": "path"}}
WITHOUT_FILE = "the object store does not have this model's file"
OTHER_LENGTH = "the file in the object store is longer or shorter than the metadata say"


def places(settings: Settings) -> tuple[dict[str, str], dict[str, str]]:
    """Return where store and database are, as boto3 wants it; the stack's own believe any name."""
    anyone = {
        "region_name": "us-east-1",
        "aws_access_key_id": "perflab",
        "aws_secret_access_key": "perflab",
    }
    addresses = (settings.store_address, settings.database_address)
    first, second = ({"endpoint_url": address, **anyone} for address in addresses)
    return first, second


def options(settings: Settings) -> dict[str, Any]:
    """Return what all clients are told."""
    return {
        "max_pool_connections": settings.pool_connections,
        "retries": {"max_attempts": settings.retries, "mode": settings.retry_mode},
    }


class BlockingStore:
    """boto3's clients of both, shared by all threads: every call holds its thread."""

    def __init__(self, settings: Settings, counts: Counts) -> None:
        session, (store, database) = boto3.session.Session(), places(settings)
        config = Config(**options(settings), **SIGNING)
        self.objects = session.client("s3", **store, config=config)
        config = Config(**options(settings))
        self.database = session.client("dynamodb", **database, config=config)
        count_connections(self.objects, counts)

    def find(self, model_id: str, version: str) -> Model:
        """Return what the database knows of a model."""
        with translated(DATABASE):
            answer = self.database.get_item(TableName=TABLE, Key=key_of(model_id, version))
        return model_from(model_id, version, answer)

    def open(self, model: Model, first: int = 0, end: int | None = None) -> Body:
        """Ask for a model's file, or its bytes from ``first`` up to but not ``end``."""
        wanted = {} if end is None else {"Range": f"bytes={first}-{end - 1}"}
        length = model.size_bytes if end is None else end - first
        with translated(STORE):
            try:
                answer = self.objects.get_object(Bucket=BUCKET, Key=model.key, **wanted)
            except self.objects.exceptions.NoSuchKey:
                raise unknown_model(WITHOUT_FILE) from None
        body = Body(answer["Body"], length)
        if answer["ContentLength"] != length:
            body.close()
            raise store_broken(OTHER_LENGTH)
        return body


class Body:
    """The bytes of an answer, of which ``left`` are still to come."""

    def __init__(self, stream: Any, length: int) -> None:
        self.left = length
        self._stream = stream

    def chunk(self) -> bytes:
        """Return the next bytes; raise Refused where the store ended before all had come."""
        with translated(STORE):
            data: bytes = self._stream.read(min(CHUNK_BYTES, self.left))
        if not data:
            raise store_broken(f"the object store's answer ended {self.left} bytes too early")
        self.left -= len(data)
        return data

    def close(self) -> None:
        """Give the connection back, or close it where bytes are left."""
        raw = self._stream._raw_stream
        if self.left:
            raw.close()
        raw.release_conn()


class AsyncStore:
    """aiobotocore's clients of both, for one event loop: nothing holds a thread."""

    def __init__(self, objects: Any, database: Any) -> None:
        self.objects, self.database = objects, database

    async def find(self, model_id: str, version: str) -> Model:
        """Return what the database knows of a model."""
        with translated(DATABASE):
            answer = await self.database.get_item(TableName=TABLE, Key=key_of(model_id, version))
        return model_from(model_id, version, answer)

    async def chunks(self, model: Model) -> AsyncIterator[bytes]:
        """Yield the bytes of a model's file; raise Refused where it ends too early."""
        with translated(STORE):
            try:
                answer = await self.objects.get_object(Bucket=BUCKET, Key=model.key)
            except self.objects.exceptions.NoSuchKey:
                raise unknown_model(WITHOUT_FILE) from None
        try:
            left = model.size_bytes
            if answer["ContentLength"] != left:
                raise store_broken(OTHER_LENGTH)
            while left:
                with translated(STORE):
                    data = await answer["Body"].read(CHUNK_BYTES)
                if not data:
                    raise store_broken(f"the object store's answer ended {left} bytes too early")
                left -= len(data)
                yield data
        finally:
            # Where bytes are left, that ends the connection.
            answer["Body"].close()

    async def link_to(self, model: Model, seconds: int) -> str:
        """Return an address, valid so long, at which the store itself gives the file."""
        wanted = {"Bucket": BUCKET, "Key": model.key}
        made = self.objects.generate_presigned_url("get_object", Params=wanted, ExpiresIn=seconds)
        return str(await made)


@asynccontextmanager
async def connected(settings: Settings, counts: Counts) -> AsyncIterator[AsyncStore]:
    """Give the async clients; nothing is asked yet, and what they keep open is closed."""
    session, (store, database) = get_session(), places(settings)
    told = {**options(settings), **SIGNING, "http_session_cls": _counting(counts)}
    async with (
        session.create_client("s3", **store, config=AioConfig(**told)) as objects,
        session.create_client(
            "dynamodb", **database, config=AioConfig(**options(settings))
        ) as metadata,
    ):
        yield AsyncStore(objects, metadata)


def _counting(counts: Counts) -> type[AIOHTTPSession]:
    """Return aiobotocore's HTTP session, counting the connections that aiohttp's pool makes.

    That pool lets requests wait beyond its limit; it throws nothing away.
    """

    class Counting(AIOHTTPSession):
        async def _create_connector(self, proxy_url: str | None) -> Any:
            connector = await super()._create_connector(proxy_url)
            make = connector._create_connection

            async def make_counted(*given: Any, **named: Any) -> Any:
                counts.add(store_created=1)
                return await make(*given, **named)

            connector._create_connection = make_counted
            return connector

    return Counting
