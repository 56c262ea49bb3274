"""``perflab fetch``: published runs, brought here from a store."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    store: Annotated[
        str,
        typer.Argument(help="folder or s3://bucket/place that 'perflab sweep' had as --store"),
    ],
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="only runs whose ids begin so; all unless given"),
    ] = None,
) -> None:
    """Bring the runs that a sweep published from its store to the recorded ones.

    Each comes whole, its files compared with the digests it was published with, or not at all. One
    that is here already stays as it is. Endpoint and keys of S3 come from the environment
    (docs/cluster.md).

    Example: perflab fetch s3://results/nightly

    Example: perflab fetch /mnt/results 20261121
    """
    from perflab.cluster.fetched_runs import bring_runs
    from perflab.paths import runs_dir

    brought = 0
    for name, is_new in bring_runs(store, runs or ()):
        print(name if is_new else f"{name} (was here)", flush=True)
        brought += is_new
    print(f"{brought} brought to {runs_dir()}")
