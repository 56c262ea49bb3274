"""Runs whose number of blocks is decided as they go: the rule, and the looks so far."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

# Below 6 blocks the signed-rank test shows nothing at 5%.
FEWEST_AT_MOST = 6
MOST_AT_MOST = 200

# Sums of shares are rounded: allow for the last bits.
ROUNDING = 1e-9

Ending = Literal["", "decided", "most blocks"]


class Look(BaseModel):
    """One look at a run: after how many blocks, and the contrasts that were still undecided."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: int = Field(ge=1, le=MOST_AT_MOST)
    undecided: tuple[str, ...] = ()


class PlannedLook(BaseModel):
    """A planned look: after how many blocks, and its share of the error of all looks.

    All looks together may find a difference that does not exist in 5% of runs. A look with a share
    of 0.25 may find one that no earlier look found in 1.25% of runs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: int = Field(ge=1, le=MOST_AT_MOST)
    share: float = Field(gt=0, le=1)


class UntilDecided(BaseModel):
    """Blocks are added until every contrast is decided: from ``least_blocks`` to ``most_blocks``.

    ``plan`` holds the planned looks, fixed before the first block, and ``looks`` those so far.
    ``ended`` says why the run ended: everything was decided, or it had the most blocks. It is empty
    while the run goes on, and if it was broken off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    least_blocks: int = Field(ge=1, le=MOST_AT_MOST)
    most_blocks: int = Field(ge=FEWEST_AT_MOST, le=MOST_AT_MOST)
    plan: tuple[PlannedLook, ...] = Field(min_length=1, max_length=MOST_AT_MOST)
    looks: tuple[Look, ...] = Field(default=(), max_length=MOST_AT_MOST)
    ended: Ending = ""

    @model_validator(mode="after")
    def _plan_leads_from_least_to_most(self) -> UntilDecided:
        blocks = [look.blocks for look in self.plan]
        ends = (blocks[0], blocks[-1])
        if ends != (self.least_blocks, self.most_blocks) or blocks != sorted(set(blocks)):
            raise ValueError(
                f"plan looks after {blocks} blocks: these numbers must rise from "
                f"{self.least_blocks} to {self.most_blocks}"
            )
        if sum(look.share for look in self.plan) > 1 + ROUNDING:
            raise ValueError("plan gives its looks shares of the error that add up to more than 1")
        return self

    def is_due(self, blocks: int) -> bool:
        """Return whether a look is planned after ``blocks``."""
        return any(look.blocks == blocks for look in self.plan)

    def next_look(self, blocks: int) -> int:
        """Return the number of blocks of the next planned look; ``most_blocks`` after the last."""
        ahead = (look.blocks for look in self.plan if look.blocks > blocks)
        return next(ahead, self.most_blocks)

    def judged_blocks(self, blocks: int) -> int:
        """Return how many of the ``blocks`` are compared: those of the last look.

        Later blocks count at the next look, so nobody can look in between. Before the first look
        all blocks are compared.
        """
        return max((look.blocks for look in self.plan if look.blocks <= blocks), default=blocks)

    def looked(self, blocks: int, undecided: tuple[str, ...]) -> UntilDecided:
        """Return the rule with one more look, or with the last one repeated after a resume."""
        earlier = tuple(look for look in self.looks if look.blocks < blocks)
        ended: Ending = "" if undecided else "decided"
        if undecided and blocks >= self.most_blocks:
            ended = "most blocks"
        look = Look(blocks=blocks, undecided=undecided)
        return self.model_copy(update={"looks": (*earlier, look), "ended": ended})

    def text(self) -> str:
        """Return how the run came to its number of blocks, in a few words."""
        if not self.looks:
            return f"until decided, at most {self.most_blocks}"
        last = self.looks[-1]
        names = "" if self.ended == "decided" else f" undecided {', '.join(last.undecided)}"
        return f"until decided: after {last.blocks} of at most {self.most_blocks}{names}"
