"""Published runs, brought from a store to where this host's own runs are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflab.cluster.store import Store
from perflab.errors import StoreError
from perflab.paths import runs_dir

RUNS = "runs"


def bring_runs(url: str, beginnings: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Bring published runs one by one; what is here already stays as it is.

    Parameters
    ----------
    beginnings : sequence of str
        Of the ids of the runs that are wanted; all are where there is none.

    Yields
    ------
    str, bool
        A run's id, and whether it was brought just now.

    Raises
    ------
    StoreError
        There is no such run, or one cannot be had whole: it is not left here in part.
    """
    store = Store(url)
    published = store.names(RUNS)
    if not published:
        raise StoreError(
            f"{url}: no run is published there; give the address that 'perflab sweep' had as "
            "--store"
        )
    for each in beginnings:
        if not any(name.startswith(each) for name in published):
            raise StoreError(
                f"{url}: the id of none of its {len(published)} runs begins with '{each}'; the "
                f"newest is {published[-1]}"
            )
    for name in published:
        if not beginnings or name.startswith(tuple(beginnings)):
            here = runs_dir() / name
            missing = not here.exists()
            if missing:
                store.fetch(f"{RUNS}/{name}", here)
            yield name, missing
