"""What a variant needs: a kind of store that the lab has, or a server in an image of others.

It is written ``NAME=KIND``, or ``NAME={"image": ..., "port": ..., "env": {...}}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationError

from perflab.errors import StackError
from perflab.parameters import FrozenModel, did_you_mean, message_of
from perflab.stacks.docker.engine import docker_client
from perflab.stacks.stores import store_node
from perflab.systems.custom.variants import PLACEHOLDER, without_value

# What a store of the lab, and a server in an image, tell who needs them.
TOLD = ("url", "host", "port", "user", "password", "name")
TOLD_OF_IMAGES = TOLD[:3]
NO_LASTING_PROCESS = "(?!)"


class Image(FrozenModel):
    """An image, the port at which its server listens, and variables of its environment."""

    image: Annotated[str, Field(pattern=r"^\S+$")]
    port: int = Field(ge=1, le=65_535)
    env: Mapping[Annotated[str, Field(pattern=r"^[^=\s]+$")], str] = Field(default_factory=dict)

    def description(self, timeout_s: float) -> dict[str, Any]:
        """Return the entries of the description of a service that is this server."""
        return {
            "summary": f"a server in the image {self.image}",
            "command": [],
            "environment": dict(self.env),
            "docker": {"image": self.image, "port": self.port},
            # What its entrypoint starts may end; the container ends with its first process.
            "lasting": NO_LASTING_PROCESS,
            "health": {"timeout_s": timeout_s},
            "store": {"product": "image", "version": self.image, "url": "http://{host}:{port}"},
        }


def image_of(wanted: str) -> Image | None:
    """Return the image that is needed; None for a kind of store, ValueError where it is wrong."""
    if not wanted.startswith("{"):
        return None
    try:
        return Image.model_validate_json(wanted)
    except ValidationError as error:
        problems = [_problem(each) for each in error.errors()]
        form = 'it is like image = "docker.io/NAME:TAG", port = 9200, env = {NAME = "value"}'
        raise ValueError(f"{'; '.join(problems)}; {form}") from None


def _problem(error: Any) -> str:
    key = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"{key}: is no key of an image{did_you_mean(key, Image.model_fields)}"
    return f"{key}: {message_of(error)}"


def told_by(roles: Mapping[str, str]) -> list[str]:
    """Return the placeholders of all that is needed."""
    return [
        f"{role}.{field}"
        for role, wanted in roles.items()
        for field in (TOLD_OF_IMAGES if wanted.startswith("{") else TOLD)
    ]


def to_declare(text: str, told: Sequence[str]) -> str:
    """Return how to declare the store of a placeholder that nothing tells; empty where known."""
    for name in PLACEHOLDER.findall(text):
        role, dot, _ = name.partition(".")
        if dot and name not in told and not did_you_mean(name, told):
            kind = "redis" if re.search("cache|redis", role) else "postgres"
            return f'; declare it: [service.needs] {role} = "{kind}"'
    return ""


def problems(roles: Mapping[str, str]) -> list[str]:
    """Return why what is needed cannot be started here."""
    found, in_images = [], []
    for role, wanted in roles.items():
        try:
            if image := image_of(wanted):
                in_images.append(role)
                found += [
                    f"needs: {role}.env.{name}: {problem}"
                    for name, text in image.env.items()
                    if (problem := without_value(text))
                ]
            else:
                store_node(role, wanted)
        except StackError as error:
            found.append(f"needs: {error}")
        except ValueError as error:
            found.append(f"needs: {role}: {error}")
    if in_images and docker_client() is None:
        found.append(
            f"needs: {', '.join(in_images)} must run in a container, and no Docker engine of this "
            "machine answers: start it, or name its socket (DOCKER_HOST=unix:///...)"
        )
    return found
