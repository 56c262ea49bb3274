"""What all descriptions of a load are: data that does not change, and knows its fields."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A description: frozen, and a name that it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
