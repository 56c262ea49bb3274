"""The preset of experiments that can take a published study's load."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from perflab.experiments.experiment import RunParameters

Preset = Literal["quick", "published"]


class PresetParameters(RunParameters):
    """Parameters with a preset: the study's values for whatever is not given."""

    preset: Preset = Field(
        default="quick",
        description="published: take the published study's load for whatever is not given",
    )

    @classmethod
    def published_values(cls) -> dict[str, Any]:
        """Return what the preset sets."""
        raise NotImplementedError

    @model_validator(mode="before")
    @classmethod
    def _take_preset(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("preset") == "published":
            return {**cls.published_values(), **values}
        return values
