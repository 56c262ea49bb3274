"""``python -m registry.populate``: fill the registry, or go on where a population ended."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError
from specimen.settings import read

from registry import zips
from registry.counts import Counts
from registry.metadata import BUCKET, TABLE, Model, key_of
from registry.settings import Settings
from registry.stores import BlockingStore

LARGE, VERSION = "arnir0_Tiny-LLM", "main"
LARGE_BYTES, MODELS = 24_834_009, 500


def populate(settings: Settings, models: int, size_bytes: int) -> int:
    """Put what is missing, and return how many models that were.

    If the store or the database fails, what was put is whole, and the next population goes on.
    """
    store = BlockingStore(settings, Counts())
    make_places(store)
    return sum(put(store, model_id, size_bytes) for model_id in model_ids(models))


def model_ids(models: int) -> Iterator[str]:
    """Yield the models of a registry, the large one first."""
    yield LARGE
    for number in range(1, models):
        yield f"perflab_small-{number:03}"


def make_places(store: BlockingStore) -> None:
    """Make bucket and table where they are not there yet."""
    with _unless("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
        store.objects.create_bucket(Bucket=BUCKET)
    kinds = {"model_id": "HASH", "version": "RANGE"}
    with _unless("ResourceInUseException"):
        store.database.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in kinds],
            KeySchema=[{"AttributeName": n, "KeyType": kind} for n, kind in kinds.items()],
        )
    store.database.get_waiter("table_exists").wait(TableName=TABLE)


def put(store: BlockingStore, model_id: str, size_bytes: int) -> bool:
    """Put a model unless it is there: the file first, and only when that is whole its row."""
    is_large = model_id == LARGE
    content = zips.of_size(model_id, size_bytes) if is_large else zips.small(model_id)
    model = Model(model_id, VERSION, len(content))
    row = store.database.get_item(TableName=TABLE, Key=key_of(model_id, VERSION))
    if row.get("Item") == model.item():
        return False
    store.objects.put_object(Bucket=BUCKET, Key=model.key, Body=content)
    store.database.put_item(TableName=TABLE, Item=model.item())
    return True


@contextmanager
def _unless(*codes: str) -> Iterator[None]:
    """Let pass what the store answers with one of these codes."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] not in codes:
            raise


def main() -> None:
    """Read what is wanted, and put it there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--size", type=int, default=LARGE_BYTES, help="of the large model's zip")
    wanted = parser.parse_args()
    began_s = time.monotonic()
    try:
        new = populate(read(Settings, "REGISTRY_"), wanted.models, wanted.size)
    except (ValueError, ClientError, BotoCoreError) as error:
        sys.exit(f"populate: {error}; repair that and start again: stored models stay")
    print(f"populated: {new} new models in {time.monotonic() - began_s:.1f} s")


if __name__ == "__main__":
    main()
