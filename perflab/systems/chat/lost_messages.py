"""Whether a trial's streams may be used: what was lost, cut or never answered; a busy client."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from perflab.load.checks.selfcheck import MAX_CLIENT_CPU
from perflab.recordings import Reason, Remark, Side
from perflab.statistics.percentiles import MAX_MOVED_SHARE, hidden_share

ACTIONS = ("send", "join", "leave")
# What a connection was given in the instant its user closed it may never be read.
MAX_LOST_SHARE = 1e-4
# What has no end has no latency, and may have been among the slowest: a tenth of what lies beyond a
# p99 moves no percentile that is reported by much.
MAX_CENSORED_SHARE = 1e-3
# Refusals that only an overloaded service has; any other may be a client's mistake.
OF_OVERLOAD = {"slow_reader", "not_stored"}
UNCOUNTED = dict.fromkeys(
    ("server_received", "server_delivered", "server_dropped", "server_not_stored",
     "server_unstored"), -1
)  # fmt: skip


@dataclass
class Judgement:
    """What is counted of a trial's streams, and what it says against the trial."""

    row: dict[str, Any] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    warnings: list[Remark] = field(default_factory=list)

    def refuse(self, code: str, text: str, side: Side = "unknown") -> None:
        """Add a reason."""
        self.reasons.append(Reason(code=f"chat.{code}", side=side, text=text))

    def warn(self, code: str, text: str) -> None:
        """Add a warning."""
        self.warnings.append(Remark(code=f"chat.{code}", text=text))

    def weigh(self, number: int, of: int, most: float, code: str, text: str, side: Side) -> None:
        """Add a reason where a number is above a share, a warning where it is above 0."""
        if number > most * max(1, of):
            self.refuse(code, text, side)
        elif number > 0:
            self.warn(code, text)


def judged(
    table: pd.DataFrame, counts: Mapping[str, Mapping[str, Any]], client_cpu: float
) -> Judgement:
    """Judge the streams of a trial.

    Parameters
    ----------
    table : DataFrame
        Its messages.
    counts : mapping
        What the servers counted themselves, by node. Those that count ``received``, ``delivered``
        and ``dropped`` messages are held against what was sent and what was read; -1 in the row
        where nobody counts.
    client_cpu : float
        The client's share of a core on the plateau; NaN without one.
    """
    found = Judgement(dict(UNCOUNTED))
    kinds = table["kind"].value_counts()
    number = {str(kind): int(n) for kind, n in kinds.items()}
    _answers(found, number)
    counted = [each for each in counts.values() if "delivered" in each]
    refused = {code: n for each in counted for code, n in (each.get("refused") or {}).items() if n}
    if counted:
        _counts(found, number, counted)
        _dropped(found, table)
    if cut := number.get("cut", 0):
        found.refuse("cut", f"{cut} WebSockets ended before their users left", "server")
    whose: Side = "server" if refused and set(refused) <= OF_OVERLOAD else "unknown"
    if refused:
        named = ", ".join(f"{n} {code}" for code, n in refused.items())
        found.refuse("refused", f"the server refused frames or users ({named})", whose)
    if errors := number.get("error", 0):
        found.refuse("error_frames", f"{errors} frames were answered with an error", whose)
    if client_cpu > MAX_CLIENT_CPU:
        text = f"the client used {client_cpu:.0%} of a core on the plateau"
        found.refuse("client_cpu", f"{text}: the limit may be its own", "client")
    return found


def _answers(found: Judgement, number: Mapping[str, int]) -> None:
    """Hold answers against what asked for them: who is never answered has no time in any column."""
    acted = sum(number.get(kind, 0) for kind in ACTIONS)
    answered = number.get("ack", 0) + number.get("error", 0)
    pings, pongs = number.get("ping", 0), number.get("pong", 0)
    for name, asked, had in (("actions", acted, answered), ("pings", pings, pongs)):
        found.row[f"unanswered_{name}"] = asked - had
        text = f"{asked - had} of {asked} {name} were never answered: their times are in no column"
        found.weigh(asked - had, asked, MAX_CENSORED_SHARE, "unanswered", text, "server")
        if had > asked:
            found.refuse("answers", f"{asked} {name} had {had} answers")


def _counts(found: Judgement, number: Mapping[str, int], counted: list[Mapping[str, Any]]) -> None:
    """Hold what the servers counted against what was sent and read."""
    received, delivered, dropped, not_stored = (
        sum(int(each.get(name, 0)) for each in counted)
        for name in ("received", "delivered", "dropped", "not_stored")
    )
    sent, read = number.get("send", 0), number.get("delivery", 0)
    lost, waiting = delivered - read, sum(map(unstored, counted))
    found.row |= {
        "server_received": received,
        "server_delivered": delivered,
        "server_dropped": dropped,
        "server_not_stored": not_stored,
        "server_unstored": waiting,
        "messages_lost": lost,
    }
    if received != sent:
        # A server cannot receive what nobody sent: then the client's own record is not whole.
        side: Side = "server" if received < sent else "client"
        text = f"{sent} messages were sent, the server received {received}"
        found.refuse("received", text, side)
    if lost < 0 or lost > MAX_LOST_SHARE * max(1, delivered):
        text = f"the server delivered {delivered} messages, the receivers read {read}"
        found.refuse("lost", text, "server" if lost > 0 else "unknown")
    elif lost:
        text = f"{lost} of {delivered} delivered messages were not read by a leaving user"
        found.warn("lost", text)
    if not_stored:
        found.refuse("not_stored", f"the server could not store {not_stored} messages", "server")
    if waiting:
        text = f"{waiting} acknowledged messages were not yet stored when the load was over"
        found.warn("unstored", text)


def _dropped(found: Judgement, table: pd.DataFrame) -> None:
    """Judge what the servers dropped by what it can hide: users who leave amid a burst cause some.

    How slow those messages would have been is not known. Were they all slower than every other, the
    p99 would lie further up among those that are known.
    """
    dropped = found.row["server_dropped"]
    if dropped <= 0:
        return
    read = table[table["kind"] == "delivery"]
    moved = hidden_share((read["at_ns"] - read["planned_ns"]).to_numpy(), dropped, 0.99)
    of = found.row["server_delivered"] + dropped
    text = f"the server dropped {dropped} of {of} messages: the p99 could be"
    if moved > MAX_MOVED_SHARE:
        by = f"{moved:.0%} higher" if math.isfinite(moved) else "anything"
        found.refuse("dropped", f"{text} {by}", "server")
    else:
        found.warn("dropped", f"{text} {moved:.1%} higher")


def unstored(counts: Mapping[str, Any]) -> int:
    """Return how many messages a server has acknowledged and neither stored nor failed to store.

    One that stores before it acknowledges never has any; one that writes behind is given a while.
    """
    acknowledged, stored = int(counts.get("acknowledged", 0)), int(counts.get("stored", 0))
    return max(0, acknowledged - stored - int(counts.get("not_stored", 0)))
