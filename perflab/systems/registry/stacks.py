"""The registry's stack, how it is filled, and what ``perflab stack up`` starts."""

from __future__ import annotations

import runpy
import zlib
from collections.abc import Mapping
from functools import cache

from perflab.paths import services_dir
from perflab.stacks.plan import Link, Node, Seed, StackPlan
from perflab.stacks.spec import Value
from perflab.trials.experiment import ReadyStack

# The published registry has one model of full size; the others have small files only.
MODEL_ID, VERSION = "arnir0_Tiny-LLM", "main"
MODEL_BYTES = 24_834_009
MODELS = 500
PATH = f"/performance/{MODEL_ID}/{VERSION}/model.zip"
POPULATED_WITHIN_S = 600.0
FREE = Link()


def stack(
    settings: Mapping[str, Value],
    *,
    model_bytes: int = MODEL_BYTES,
    models: int = MODELS,
    link: Link = FREE,
    apart: str = "",
) -> StackPlan:
    """Return the object store, the link, the metadata and the service, and how it is filled.

    ``settings`` are those of the service (``services/registry/service.toml``). The link lies
    between service and store; metadata does not pass through it, so that downloads do not delay it.
    Treatments that differ in ``apart`` have a service each, even with the same settings.
    """
    options = ("--models", str(models), "--size", str(model_bytes))
    return StackPlan(
        nodes=(
            Node(name="store", service="objectstore", placement="database"),
            Node(name="metadata", service="objectstore", placement="database"),
            link.node("store"),
            Node(
                name="registry",
                service="registry",
                needs={"store": "link", "database": "metadata"},
                settings=settings,
                apart=apart,
            ),
        ),
        seed=(
            Seed(
                node="registry",
                command=("{python}", "-m", "registry.populate", *options),
                timeout_s=POPULATED_WITHIN_S,
            ),
        ),
    )


@cache
def model_crc32(model_bytes: int) -> int:
    """Return the CRC-32 of the large model's file, which has ``model_bytes``.

    The content is invented but always the same; the service's own module makes it. A ValueError
    says that the length is too short for the files that every model has.
    """
    zips = runpy.run_path(str(services_dir() / "registry/registry/zips.py"))
    return zlib.crc32(zips["of_size"](MODEL_ID, model_bytes))


STACKS = (
    ReadyStack(
        "registry",
        lambda: stack({"handler": "executor", "executor_threads": 100, "pool_connections": 150}),
        f"the large model is at {PATH} of the registry's address",
    ),
)
