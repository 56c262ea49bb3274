"""What ``perflab stack up`` starts of the chat system."""

from __future__ import annotations

from perflab.systems.chat.service import ChatParameters, Rung, stack
from perflab.systems.chat.users import PASSWORD
from perflab.trials.experiment import ReadyStack

# As many as the published study's users, and one to watch them.
ACCOUNTS = 251

STACKS = (
    ReadyStack(
        "chat",
        lambda: stack(ChatParameters(), Rung(), ACCOUNTS),
        f"log in as user0 to user{ACCOUNTS - 1}, password '{PASSWORD}'",
    ),
)
