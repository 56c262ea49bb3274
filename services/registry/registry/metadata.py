"""What the database knows of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from registry.refusals import unknown_model

BUCKET = TABLE = "models"


@dataclass(frozen=True)
class Model:
    """One version of one model, and how long its file is."""

    model_id: str
    version: str
    size_bytes: int

    @property
    def key(self) -> str:
        """Return where its file is in the bucket."""
        return f"performance/{self.model_id}/{self.version}/model.zip"

    def item(self) -> dict[str, Any]:
        """Return it as DynamoDB keeps it."""
        return key_of(self.model_id, self.version) | {"size_bytes": {"N": str(self.size_bytes)}}


def key_of(model_id: str, version: str) -> dict[str, Any]:
    """Return the key of a model in the table."""
    return {"model_id": {"S": model_id}, "version": {"S": version}}


def model_from(model_id: str, version: str, answer: Mapping[str, Any]) -> Model:
    """Return the model of an answer to ``get_item``; raise Refused if it has none."""
    item = answer.get("Item")
    if item is None:
        raise unknown_model("the registry has no such model and version")
    return Model(model_id, version, int(item["size_bytes"]["N"]))
