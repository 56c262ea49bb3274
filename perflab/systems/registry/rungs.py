"""The rungs (``rungs.csv``), and the published claims as contrasts (``contrasts.csv``).

Every request of the published baseline timed out, so its times are lower bounds: published sizes
are bounds, and so are measured ones over such a baseline.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from perflab.recordings import Contrast
from perflab.recordings.contrast_rows import ContrastRow
from perflab.recordings.typed_rows import rows_of
from perflab.trials.ladders import Labelled, having, read_ladder

Handler = Literal["blocking", "threads", "to_thread", "executor", "async", "redirect", "ranged"]
LoadFrom = Literal["outside", "inside"]
# The handler ``ranged`` reads a model in as many parts, each in a thread.
RANGES = 4
# FastAPI runs plain defs in this many threads (anyio's default limiter).
FRAMEWORK_THREADS = 40
HERE = Path(__file__).parent
CONTRASTS = rows_of(HERE / "contrasts.csv", ContrastRow)
STUDY = "registry"
# The rung with one client.
ALONE = "one_client"
SHARED = "all downloads share the bytes of one link, which one by itself has alone"
RESULTS = "results table"


class Rung(Labelled):
    """One way to serve downloads: the settings of the service, and its load.

    ``executor_threads`` 0 is Python's own number. ``one_client`` leaves one client only.
    ``load_from``: the lab's clients download, or those of the service's own generator, on the
    event loop that serves them.
    """

    handler: Handler
    executor_threads: int = 0
    pool_connections: int = 10
    retries: int = 4
    retry_mode: Literal["legacy", "standard"] = "legacy"
    body: Literal["buffered", "streamed"] = "buffered"
    one_client: bool = False
    load_from: LoadFrom = "outside"

    @property
    def settings(self) -> dict[str, str | int | float]:
        """Return the settings of the service."""
        return self.model_dump(exclude={"label", "one_client", "load_from"})


LADDER = read_ladder(HERE / "rungs.csv", Rung)
RUNGS = LADDER.rungs


def inside(name: str) -> str:
    """Return the name of a rung with its load from inside the service."""
    return f"{name}_inside"


def lanes(rung: Rung, cores: int) -> int | None:
    """Return how many downloads a rung lets run at a time, or None if it has no limit.

    Python's own executor has min(32, cores + 4) threads, by the cores that Python counts.
    """
    if rung.handler == "blocking":
        return 1
    if rung.handler == "threads":
        return FRAMEWORK_THREADS
    if rung.handler in ("async", "redirect"):
        return None
    threads = rung.executor_threads or min(32, cores + 4)
    return max(1, threads // RANGES) if rung.handler == "ranged" else threads


def contrasts(rungs: Collection[str], as_published: bool, shares_link: bool) -> list[Contrast]:
    """Return every contrast whose rungs the run has.

    ``as_published`` says whether published sizes may be compared, given load and link. Where all
    downloads share the link's bytes, this alone sets how one of many compares with one by itself.
    """
    of_run = having((row.contrast(STUDY, sized=as_published) for row in CONTRASTS), rungs)
    set_by_load = {"set_by_load": SHARED} if shares_link else {}
    alone = {"rung": ALONE}
    return [
        contrast.model_copy(update=set_by_load) if contrast.denominator == alone else contrast
        for contrast in of_run
    ]
