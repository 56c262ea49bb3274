"""A registry's own counts, read repeatedly while it is under load."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import pandas as pd

from perflab.errors import StackError
from perflab.host.meters import Repeated
from perflab.instruments import Instrument, Load, Observation
from perflab.instruments.instrument import Sampled
from perflab.recordings.responses import or_bound
from perflab.stacks.asking import exchange

# A column of the table, and the key of its number in the service's answer.
COUNTED: Mapping[str, str] = {
    "waiting_for_thread": "waiting_for_thread",
    "working_threads": "working_threads",
    "most_waiting_for_thread": "most_waiting_for_thread",
    "in_flight": "open",
    "store_created": "store_created",
    "store_discarded": "store_discarded",
    "rss_bytes": "rss_bytes",
}
# A response, and the column of the last answer that it is.
OF_LAST_ANSWER = {
    "most_waiting": "most_waiting_for_thread",
    "store_connections_made": "store_created",
    "store_connections_discarded": "store_discarded",
}
INTERVAL_S = 0.2
# Long enough for a busy service. After this time the lab asks anew, so that a look can end.
PATIENCE_S = 3.0
TABLE = "registry_counts"
PATH = "/counts"


def download_columns(requests: pd.DataFrame) -> dict[str, float]:
    """Return the columns of all downloads of a trial.

    ``total_duration_s`` is from the common start to the last byte of the last download. If a
    download timed out, it is not known, and ``total_duration_s_at_least`` is when the last client
    gave up. ``fastest_ms`` is likewise not known if no download was complete. ``told_*`` are the
    same numbers under the names in which a rung with a load from inside has those of the service's
    generator, so that both compare.
    """
    is_whole = requests["error"] == ""
    response_ms = (requests["done_ns"] - requests["planned_ns"]) / 1e6
    took_s = float(requests["done_ns"].max() - requests["planned_ns"].min()) / 1e9
    columns = {"succeeded": float(is_whole.sum())}
    columns |= or_bound("total_duration_s", took_s, bool(is_whole.all()))
    columns |= {f"told_{name}": value for name, value in columns.items()}
    fastest_ms = float(response_ms[is_whole].min() if is_whole.any() else response_ms.min())
    return columns | or_bound("fastest_ms", fastest_ms, bool(is_whole.any()))


def counted_columns(table: pd.DataFrame, end_ns: int) -> dict[str, float]:
    """Return the columns of the counts until the end of a load; NaN if not known.

    The table has t_ns, answered_ns (0: no answer) and the columns of ``COUNTED``; its last row was
    read after the load. Numbers come from that last answer, because an answer from before a silence
    says nothing about the silence.
    """
    last = table.iloc[-1]
    numbers = {
        column: float(last[name]) if last["answered_ns"] else math.nan
        for column, name in OF_LAST_ANSWER.items()
    }
    return numbers | silence_columns(table[table["t_ns"] <= end_ns], end_ns)


def silence_columns(table: pd.DataFrame, end_ns: int) -> dict[str, float]:
    """Return ``longest_silence_ms``, the longest wait for the service's counts.

    A silence lasts from the first unanswered question to the next answer, also over questions that
    were given up and asked anew. Of a silence that outlasted the load only a lower bound is known.
    """
    longest_ms, since_ns = 0.0, 0
    for t_ns, answered_ns in zip(table["t_ns"], table["answered_ns"], strict=True):
        since_ns = since_ns or int(t_ns)
        if answered_ns:
            longest_ms = max(longest_ms, (int(answered_ns) - since_ns) / 1e6)
            since_ns = 0
    last_ms = max(0.0, (end_ns - since_ns) / 1e6) if since_ns else 0.0
    most_ms = max(longest_ms, last_ms) or math.nan
    return or_bound("longest_silence_ms", most_ms, last_ms <= longest_ms)


class _RegistryCounts(Sampled["RegistryCounts"]):
    @cached_property
    def sampler(self) -> Repeated:
        return Repeated(self._ask, INTERVAL_S)

    def after(self) -> None:
        """Read the counts once more, up to the end."""
        self._ask()

    def left(self) -> Mapping[str, pd.DataFrame]:
        return {TABLE: self._table()} if self.rows else {}

    def observe(self, load: Load) -> Observation:
        table = self._table()
        columns = {
            **(download_columns(load.result.requests) if self.settings.downloads else {}),
            **counted_columns(table, load.result.end_ns),
        }
        return Observation(columns, self.left())

    def _ask(self) -> None:
        asked_ns = time.monotonic_ns()
        answer = self._answer()
        answered_ns = time.monotonic_ns() if answer else 0
        numbers = {name: float(answer.get(key, math.nan)) for name, key in COUNTED.items()}
        self.rows.append({"t_ns": asked_ns, "answered_ns": answered_ns, **numbers})

    def _answer(self) -> dict[str, Any]:
        port = self.scene.instance("registry").launch.control_port
        try:
            status, text = exchange(port, "GET", PATH, None, PATIENCE_S)
            return dict(json.loads(text)) if status == 200 else {}
        except (StackError, ValueError, TypeError):
            # Another check finds a dead service; a service that is held up only stays silent.
            return {}

    def _table(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows, columns=["t_ns", "answered_ns", *COUNTED])


class RegistryCounts(Instrument):
    """Reads a registry's counts five times a second into the table ``registry_counts``.

    Instants are CLOCK_MONOTONIC: ``t_ns`` of the question, ``answered_ns`` of the answer. A service
    whose event loop is held up does not answer: ``answered_ns`` is then 0, and its numbers are NaN.
    With ``downloads`` the lab's own load consists of downloads, which are summed up.
    """

    at_work: ClassVar = _RegistryCounts
    tables: ClassVar = {
        TABLE: {"t_ns": "int64", "answered_ns": "int64", **dict.fromkeys(COUNTED, "double")}
    }

    downloads: bool = True
