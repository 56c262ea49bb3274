"""What ``perflab stack up`` starts of the chat system."""

from __future__ import annotations

from perflab.systems.chat.service import ChatParameters, Rung, stack
from perflab.systems.chat.users import PASSWORD
from perflab.trials.experiment import ReadyStack

# The users of the published study and the monitor.
ACCOUNTS = 251

STACKS = (
    ReadyStack(
        "chat",
        lambda: stack(ChatParameters(), Rung(), ACCOUNTS),
        f"log in as user0 to user{ACCOUNTS - 1}, password '{PASSWORD}'",
    ),
)
