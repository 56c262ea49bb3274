"""The rungs (``rungs.csv``), and the published claims as contrasts (``contrasts.csv``).

The study defines neither its success nor the load of each phase, so of these only directions are
compared. It states one size, that of keep-alive, which it expects and never measured.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from perflab.load.workload import Reuse
from perflab.recordings import Contrast
from perflab.recordings.contrast_rows import ContrastRow
from perflab.recordings.typed_rows import rows_of
from perflab.trials.ladders import Labelled, having, read_ladder

Threading = Literal["thread", "producer_consumer", "pool", "epoll"]
LoadFrom = Literal["lab", "naive_client"]
HERE = Path(__file__).parent
CONTRASTS = rows_of(HERE / "contrasts.csv", ContrastRow)
# How each load test of the study uses connections; the last one is the second on another server.
LOAD_TESTS = {
    "naive_closes_new": "a connection per request",
    "naive_closes_reused": "a connection kept, which the server closes",
    "naive_keeps_reused": "a connection kept by both",
}
# Each has its match: the same server and the same connections, with the load from the lab.
OF_THE_LAB = {name: name.replace("naive", "thread") for name in LOAD_TESTS}
# The rung of which the study claims levels.
LEVELS_OF = "phase_7"
STUDY = "metricstream"
OTHERS, PHASES_TABLE = "other published figures", "phases table"


class Rung(Labelled):
    """A server and the load it gets.

    ``load`` is ``target`` (the target rate) or ``closed``: the run's clients without think time. A
    request holds ``metrics``. ``load_from``: the lab's clients post, or the load tests of the
    study, built anew.
    """

    threading: Threading = "thread"
    threads: int = 16
    keep_alive: Literal["off", "on"] = "off"
    parser: Literal["quadratic", "linear"] = "linear"
    store: Literal["double_mutex", "per_client", "ring"] = "per_client"
    connection: Reuse = "per_request"
    load: Literal["target", "closed"] = "target"
    metrics: int = 1
    load_from: LoadFrom = "lab"

    @property
    def settings(self) -> dict[str, str | int | float]:
        """Return the settings of the service."""
        names = ("threading", "threads", "keep_alive", "parser", "store")
        return {name: getattr(self, name) for name in names}


LADDER = read_ladder(HERE / "rungs.csv", Rung)


def contrasts(rungs: Collection[str], as_published: bool, sized: bool) -> list[Contrast]:
    """Return every contrast whose rungs the run has.

    ``as_published`` says whether the load is the study's: a level is claimed at no other. ``sized``
    says the same of a server that may have less than a core, as closed loops need it here.
    """
    rows = (row for row in CONTRASTS if row.scale != "level" or as_published)
    return having((row.contrast(STUDY, sized=sized) for row in rows), rungs)
