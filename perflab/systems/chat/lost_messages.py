"""Checks whether a trial is valid: lost or unanswered messages, cut streams, a busy client."""

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
# A user who closes a connection may never read the messages of that instant.
MAX_LOST_SHARE = 1e-4
# An unanswered request has no latency and may be among the slowest. This share is a tenth of the
# share beyond a p99, so it moves no reported percentile by much.
MAX_CENSORED_SHARE = 1e-3
# Only an overloaded service refuses for these reasons; any other may be a client's mistake.
OF_OVERLOAD = {"slow_reader", "not_stored"}
UNCOUNTED = dict.fromkeys(
    ("server_received", "server_delivered", "server_dropped", "server_not_stored",
     "server_unstored"), -1
)  # fmt: skip


@dataclass
class Judgement:
    """The counts of a trial's streams, with reasons to refuse the trial and warnings."""

    row: dict[str, Any] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    warnings: list[Remark] = field(default_factory=list)

    def refuse(self, code: str, text: str, side: Side = "unknown") -> None:
        """Add a reason to refuse the trial."""
        self.reasons.append(Reason(code=f"chat.{code}", side=side, text=text))

    def warn(self, code: str, text: str) -> None:
        """Add a warning."""
        self.warnings.append(Remark(code=f"chat.{code}", text=text))

    def weigh(self, number: int, of: int, most: float, code: str, text: str, side: Side) -> None:
        """Add a reason if ``number`` is more than a share of ``of``, a warning if it is above 0."""
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
        The trial's messages.
    counts : mapping
        What the servers counted themselves, by node. Counts of ``received``, ``delivered`` and
        ``dropped`` messages are compared with the messages sent and read; the row has -1 for each
        if no server counts.
    client_cpu : float
        The client's share of a core on the plateau; NaN if there was no plateau.
    """
    judgement = Judgement(dict(UNCOUNTED))
    kinds = table["kind"].value_counts()
    number = {str(kind): int(n) for kind, n in kinds.items()}
    _answers(judgement, number)
    counted = [server for server in counts.values() if "delivered" in server]
    refused = {
        code: n for server in counted for code, n in (server.get("refused") or {}).items() if n
    }
    if counted:
        _counts(judgement, number, counted)
        _dropped(judgement, table)
    if cut := number.get("cut", 0):
        judgement.refuse("cut", f"{cut} WebSockets ended before their users left", "server")
    side: Side = "server" if refused and set(refused) <= OF_OVERLOAD else "unknown"
    if refused:
        named = ", ".join(f"{n} {code}" for code, n in refused.items())
        judgement.refuse("refused", f"the server refused frames or users ({named})", side)
    if errors := number.get("error", 0):
        judgement.refuse("error_frames", f"{errors} frames were answered with an error", side)
    if client_cpu > MAX_CLIENT_CPU:
        text = f"the client used {client_cpu:.0%} of a core on the plateau"
        judgement.refuse("client_cpu", f"{text}: the limit may be its own", "client")
    return judgement


def _answers(judgement: Judgement, number: Mapping[str, int]) -> None:
    """Compare answers with requests: an unanswered request has no time in any column."""
    acted = sum(number.get(kind, 0) for kind in ACTIONS)
    action_answers = number.get("ack", 0) + number.get("error", 0)
    pings, pongs = number.get("ping", 0), number.get("pong", 0)
    for name, sent, answered in (("actions", acted, action_answers), ("pings", pings, pongs)):
        judgement.row[f"unanswered_{name}"] = sent - answered
        text = (
            f"{sent - answered} of {sent} {name} were never answered: their times are in no column"
        )
        judgement.weigh(sent - answered, sent, MAX_CENSORED_SHARE, "unanswered", text, "server")
        if answered > sent:
            judgement.refuse("answers", f"{sent} {name} had {answered} answers")


def _counts(
    judgement: Judgement, number: Mapping[str, int], counted: list[Mapping[str, Any]]
) -> None:
    """Compare the servers' counts with the messages sent and read."""
    received, delivered, dropped, not_stored = (
        sum(int(server.get(name, 0)) for server in counted)
        for name in ("received", "delivered", "dropped", "not_stored")
    )
    sent, read = number.get("send", 0), number.get("delivery", 0)
    lost, not_yet_stored = delivered - read, sum(map(unstored, counted))
    judgement.row |= {
        "server_received": received,
        "server_delivered": delivered,
        "server_dropped": dropped,
        "server_not_stored": not_stored,
        "server_unstored": not_yet_stored,
        "messages_lost": lost,
    }
    if received != sent:
        # A server cannot receive more than was sent: then the client's own record is incomplete.
        side: Side = "server" if received < sent else "client"
        text = f"{sent} messages were sent, the server received {received}"
        judgement.refuse("received", text, side)
    if lost < 0 or lost > MAX_LOST_SHARE * max(1, delivered):
        text = f"the server delivered {delivered} messages, the receivers read {read}"
        judgement.refuse("lost", text, "server" if lost > 0 else "unknown")
    elif lost:
        text = f"{lost} of {delivered} delivered messages were not read by a leaving user"
        judgement.warn("lost", text)
    if not_stored:
        judgement.refuse(
            "not_stored", f"the server could not store {not_stored} messages", "server"
        )
    if not_yet_stored:
        text = f"{not_yet_stored} acknowledged messages were not yet stored when the load was over"
        judgement.warn("unstored", text)


def _dropped(judgement: Judgement, table: pd.DataFrame) -> None:
    """Judge dropped messages by how far they could move the p99.

    A user who leaves amid a burst causes some. Their latency is unknown; if all of them were slower
    than every delivered message, the p99 would be a higher quantile of the delivered ones.
    """
    dropped = judgement.row["server_dropped"]
    if dropped <= 0:
        return
    read = table[table["kind"] == "delivery"]
    moved = hidden_share((read["at_ns"] - read["planned_ns"]).to_numpy(), dropped, 0.99)
    offered = judgement.row["server_delivered"] + dropped
    text = f"the server dropped {dropped} of {offered} messages: the p99 could be"
    if moved > MAX_MOVED_SHARE:
        by = f"{moved:.0%} higher" if math.isfinite(moved) else "anything"
        judgement.refuse("dropped", f"{text} {by}", "server")
    else:
        judgement.warn("dropped", f"{text} {moved:.1%} higher")


def unstored(counts: Mapping[str, Any]) -> int:
    """Return how many acknowledged messages a server has neither stored nor failed to store.

    Only a server that writes behind has any.
    """
    acknowledged, stored = int(counts.get("acknowledged", 0)), int(counts.get("stored", 0))
    return max(0, acknowledged - stored - int(counts.get("not_stored", 0)))
