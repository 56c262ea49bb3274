"""What the database knows of a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specimen.refusal import Refused

from registry.refusals import store_broken, unknown_model

BUCKET = TABLE = "models"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


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


def check_names(model_id: str, version: str) -> None:
    """Raise Refused for what can be no part of a key."""
    for what, name in (("model id", model_id), ("version", version)):
        if not _NAME.fullmatch(name):
            reason = (
                f"the {what} must be 1 to 128 letters, digits, '.', '_' and '-', and begin with a "
                "letter or digit"
            )
            raise Refused(422, "bad_name", reason)


def key_of(model_id: str, version: str) -> dict[str, Any]:
    """Return the key of a model in the table."""
    return {"model_id": {"S": model_id}, "version": {"S": version}}


def model_from(model_id: str, version: str, answer: Mapping[str, Any]) -> Model:
    """Return the model of an answer to ``get_item``.

    Raises
    ------
    Refused
        There is none, or what is kept is not what a model has.
    """
    item = answer.get("Item")
    if item is None:
        raise unknown_model("the registry has no such model and version")
    try:
        return Model(model_id, version, int(item["size_bytes"]["N"]))
    except (KeyError, ValueError, TypeError):
        raise store_broken("the metadata of this model cannot be read") from None
