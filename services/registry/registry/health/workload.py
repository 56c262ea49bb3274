"""What may be asked for: the published body, with bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from registry.health.refusal import BadRequest

MOST_CLIENTS = 500
MOST_SECONDS = 3600
# 500 downloads of the published 24.8 MB are 12.4 GB.
MOST_BYTES = 16_000_000_000
MOST_BODY_BYTES = 4096
# An owner and a name, as published, or a name alone; no part begins with a dot, so none is "..".
_PART = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}"
MODEL_ID = f"^{_PART}(/{_PART})?$"


class Workload(BaseModel):
    """So many clients each download the model once; what is not done by the end is timed out."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())

    num_clients: Annotated[int, Field(ge=1, le=MOST_CLIENTS)]
    model_id: Annotated[str, Field(max_length=193, pattern=MODEL_ID)]
    duration_seconds: Annotated[int, Field(ge=1, le=MOST_SECONDS)]

    def path(self, version: str) -> str:
        """Return the path of the download; the id's slash is an underscore in it, as published."""
        return f"/performance/{self.model_id.replace('/', '_')}/{version}/model.zip"


def read_workload(body: bytes) -> Workload:
    """Read the JSON body of a request.

    Raises
    ------
    BadRequest
        It is no JSON, or a field is missing, unknown, of another type or out of bounds.
    """
    try:
        return Workload.model_validate_json(body)
    except ValidationError as error:
        # Names and bounds, not what was sent, which may be anything.
        found = error.errors(include_input=False, include_url=False, include_context=False)
        wrong = (f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in found)
        raise BadRequest("; ".join(wrong)) from None
