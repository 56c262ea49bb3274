"""The store through aiobotocore: nothing holds a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import get_session

from registry.refusal import StoreBroken, UnknownModel
from registry.settings import Settings
from registry.store.blocking import CHUNK_BYTES, DATABASE, STORE, database_options, options
from registry.store.credentials import database_endpoint, store_endpoint
from registry.store.faults import translated
from registry.store.metadata import Model, key_of, model_from
from registry.store.pools import Tally


class AsyncStore:
    """Clients of both, for one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._bucket, self._table = settings.bucket, settings.table
        self._opened = AsyncExitStack()
        self.tally, self.database_tally = Tally(), Tally()
        self.objects: Any = None
        self.database: Any = None

    async def connect(self) -> None:
        """Make the clients; nothing is asked yet."""
        settings, session = self._settings, get_session()
        config = AioConfig(http_session_cls=_counting(self.tally), **options(settings))
        at = store_endpoint(settings).client_options()
        self.objects = await self._opened.enter_async_context(
            session.create_client("s3", **at, config=config)
        )
        told = database_options(settings)
        config = AioConfig(http_session_cls=_counting(self.database_tally), **told)
        at = database_endpoint(settings).client_options()
        self.database = await self._opened.enter_async_context(
            session.create_client("dynamodb", **at, config=config)
        )

    async def find(self, model_id: str, version: str) -> Model:
        """Return what the database knows of a model."""
        with translated(DATABASE):
            answer = await self.database.get_item(
                TableName=self._table, Key=key_of(model_id, version), ConsistentRead=True
            )
        return model_from(model_id, version, answer)

    @asynccontextmanager
    async def opened(self, model: Model) -> AsyncIterator[Any]:
        """Give the stream of a model's file; its connection is closed where bytes are left."""
        with translated(STORE):
            try:
                answer = await self.objects.get_object(Bucket=self._bucket, Key=model.key)
            except self.objects.exceptions.NoSuchKey:
                raise UnknownModel("the object store does not have this model's file") from None
        stream = answer["Body"]
        try:
            if answer["ContentLength"] != model.size_bytes:
                raise StoreBroken("the object store has another length than the metadata")
            yield stream
        finally:
            stream.close()

    async def chunks(self, stream: Any, length: int) -> AsyncIterator[bytes]:
        """Yield the bytes of a stream; raise StoreBroken where it ends too early."""
        left = length
        while left:
            with translated(STORE):
                data = await stream.read(CHUNK_BYTES)
            if not data:
                raise StoreBroken(f"the object store ended {left} bytes too early")
            left -= len(data)
            yield data

    async def link_to(self, model: Model, seconds: int) -> str:
        """Return an address, valid so long, at which the store itself gives the file."""
        wanted = {"Bucket": self._bucket, "Key": model.key}
        made = self.objects.generate_presigned_url("get_object", Params=wanted, ExpiresIn=seconds)
        return str(await made)

    async def close(self) -> None:
        """Close what is kept open."""
        await self._opened.aclose()


def _counting(tally: Tally) -> type[AIOHTTPSession]:
    """Return aiobotocore's HTTP session, counting the connections of aiohttp's pool.

    That pool makes requests wait beyond its limit; it discards nothing.
    """

    class Counting(AIOHTTPSession):
        async def _create_connector(self, proxy_url: str | None) -> Any:
            connector = await super()._create_connector(proxy_url)
            make = connector._create_connection

            async def make_counted(*given: Any, **named: Any) -> Any:
                protocol = await make(*given, **named)
                tally.add("created")
                tally.add("open")
                protocol.closed.add_done_callback(lambda _: tally.add("open", -1))
                return protocol

            connector._create_connection = make_counted
            return connector

        async def send(self, request: Any) -> Any:
            tally.add("requests")
            return await super().send(request)

    return Counting
