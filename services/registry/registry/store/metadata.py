"""What the database knows of a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from registry.refusal import BadName, StoreBroken, UnknownModel

PREFIX = "performance"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


@dataclass(frozen=True)
class Model:
    """One version of one model: where its file is, how long, and its SHA-256 in hex."""

    model_id: str
    version: str
    key: str
    size_bytes: int
    sha256: str

    def item(self) -> dict[str, Any]:
        """Return it as DynamoDB keeps it."""
        return {
            **key_of(self.model_id, self.version),
            "key": {"S": self.key},
            "size_bytes": {"N": str(self.size_bytes)},
            "sha256": {"S": self.sha256},
        }


def object_key(model_id: str, version: str) -> str:
    """Return where the file of a model is in the bucket."""
    return f"{PREFIX}/{model_id}/{version}/model.zip"


def check_names(model_id: str, version: str) -> None:
    """Raise BadName for what can be no part of a key, such as the tricks of paths."""
    for what, name in (("model id", model_id), ("version", version)):
        if not _NAME.fullmatch(name) or ".." in name:
            raise BadName(
                f"the {what} must be 1 to 128 letters, digits, '.', '_' and '-', begin with a "
                "letter or digit, and hold no '..'"
            )


def key_of(model_id: str, version: str) -> dict[str, Any]:
    """Return the key of a model in the table."""
    return {"model_id": {"S": model_id}, "version": {"S": version}}


def model_from(model_id: str, version: str, answer: Mapping[str, Any]) -> Model:
    """Return the model of an answer to ``get_item``.

    Raises
    ------
    UnknownModel
        There is none.
    StoreBroken
        What is kept is not what a model has.
    """
    item = answer.get("Item")
    if item is None:
        raise UnknownModel("the registry has no such model and version")
    try:
        size = int(item["size_bytes"]["N"])
        return Model(model_id, version, item["key"]["S"], size, item["sha256"]["S"])
    except (KeyError, ValueError, TypeError):
        raise StoreBroken("the metadata of this model cannot be read") from None
