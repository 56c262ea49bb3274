"""Filling the registry: what belongs in it, and putting there what is missing."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from registry import zips
from registry.settings import Settings
from registry.store.blocking import BlockingStore
from registry.store.metadata import Model, key_of, object_key

LARGE, VERSION = "arnir0_Tiny-LLM", "main"
LARGE_BYTES = 24_834_009
MODELS = 500
# A population that died keeps others out for so long.
LEASE_S = 30
# No model can be called so.
LEASE = key_of("#population", "#")
Tell = Callable[[str], None]


class Failed(Exception):
    """The registry could not be filled; the message says why and what to do."""


def model_ids(models: int) -> Iterator[str]:
    """Yield the models of a registry, the large one first."""
    yield LARGE
    for number in range(1, models):
        yield f"perflab_small-{number:03}"


def content_of(model_id: str, size_bytes: int) -> bytes:
    """Return the file of a model; ``size_bytes`` is the large one's."""
    return zips.of_size(model_id, size_bytes) if model_id == LARGE else zips.small(model_id)


class Population:
    """Fills one bucket and one table; what is there already stays."""

    def __init__(self, settings: Settings, tell: Tell) -> None:
        self._store = BlockingStore(settings)
        self._objects, self._database = self._store.objects, self._store.database
        self._bucket, self._table = settings.bucket, settings.table
        self._tell = tell
        self._owner = secrets.token_hex(8)
        self._renewed_s = 0.0

    def run(self, models: int, size_bytes: int) -> int:
        """Put what is missing; return how many models that were.

        Raises
        ------
        Failed
            The store or the database refuses, or another population is under way. What was put is
            whole, and the next run goes on from there.
        """
        try:
            self._make_places()
            with self._alone():
                return self._put_all(models, size_bytes)
        except (ClientError, BotoCoreError) as error:
            raise Failed(_told(error)) from None
        finally:
            self._store.close()

    def _make_places(self) -> None:
        with _unless("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
            self._objects.create_bucket(Bucket=self._bucket)
        names = ("model_id", "version")
        kinds = ("HASH", "RANGE")
        with _unless("ResourceInUseException"):
            self._database.create_table(
                TableName=self._table,
                BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[
                    {"AttributeName": name, "AttributeType": "S"} for name in names
                ],
                KeySchema=[
                    {"AttributeName": name, "KeyType": kind}
                    for name, kind in zip(names, kinds, strict=True)
                ],
            )
        self._database.get_waiter("table_exists").wait(TableName=self._table)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lease of populations."""
        self._renew(first=True)
        try:
            yield
        finally:
            mine = {":owner": {"S": self._owner}}
            with _unless("ConditionalCheckFailedException"):
                self._database.delete_item(
                    TableName=self._table, Key=LEASE, ConditionExpression="lease_owner = :owner",
                    ExpressionAttributeValues=mine,
                )  # fmt: skip

    def _renew(self, first: bool = False) -> None:
        now = time.time()
        if now - self._renewed_s < LEASE_S / 3:
            return
        free, values = "lease_owner = :owner", {":owner": {"S": self._owner}}
        if first:
            free = "attribute_not_exists(model_id) OR lease_until < :now"
            values = {":now": {"N": str(int(now))}}
        held = {"lease_owner": {"S": self._owner}, "lease_until": {"N": str(int(now) + LEASE_S)}}
        try:
            self._database.put_item(
                TableName=self._table, Item=LEASE | held, ConditionExpression=free,
                ExpressionAttributeValues=values,
            )  # fmt: skip
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            raise Failed(
                "another population of this registry is under way: let it end, or, if it died, "
                f"wait {LEASE_S} s and start again"
            ) from None
        self._renewed_s = now

    def _put_all(self, models: int, size_bytes: int) -> int:
        put = 0
        for number, model_id in enumerate(model_ids(models), 1):
            self._renew()
            content = content_of(model_id, size_bytes)
            put += self._put(model_id, content)
            if number % 50 == 0 or number in (1, models):
                self._tell(f"{number} of {models} models, {put} of them new")
        return put

    def _put(self, model_id: str, content: bytes) -> bool:
        """Put a model unless it is there: the file first, and only when that is whole its row."""
        digest = hashlib.sha256(content).hexdigest()
        key = object_key(model_id, VERSION)
        model = Model(model_id, VERSION, key, len(content), digest)
        if self._has(model):
            return False
        self._objects.put_object(Bucket=self._bucket, Key=key, Body=content)
        self._database.put_item(TableName=self._table, Item=model.item())
        return True

    def _has(self, model: Model) -> bool:
        key = key_of(model.model_id, model.version)
        row = self._database.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        if row.get("Item") != model.item():
            return False
        try:
            kept = self._objects.head_object(Bucket=self._bucket, Key=model.key)
        except ClientError:
            return False
        return bool(kept["ContentLength"] == model.size_bytes)


@contextmanager
def _unless(*codes: str) -> Iterator[None]:
    """Let pass what the store answers with one of these codes."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] not in codes:
            raise


def _told(error: Any) -> str:
    again = "start again, and what is there already stays"
    if isinstance(error, BotoCoreError):
        return f"the store does not answer ({type(error).__name__}): when it does, {again}"
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    told = f"{status} {error.response['Error'].get('Code', '')}"
    if status in (401, 403):
        return f"the store does not take these credentials ({told})"
    return f"the store does not take it ({told}): its disk may be full. Make room and {again}"
