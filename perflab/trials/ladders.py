"""Ladders: experiments whose treatments are rungs with names, each a bundle of settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import Field, model_validator

from perflab.instruments import Instrument
from perflab.load.workload import Workload
from perflab.parameters import did_you_mean
from perflab.recordings import Contrast
from perflab.recordings.contrasts import Direction
from perflab.stacks.plan import StackPlan
from perflab.trials.experiment import PresetParameters, RunParameters
from perflab.trials.plan import Treatment

RUNG = "rung"


class Labelled(Protocol):
    """What a rung is at least: something with words for it."""

    @property
    def label(self) -> str:
        """Return its words."""
        ...


P = TypeVar("P", bound=RunParameters)
R = TypeVar("R", bound=Labelled)


class LadderParameters(PresetParameters):
    """Parameters of a ladder: whose sets of rungs, and which rungs of them only."""

    rungs: tuple[str, ...] = Field(
        default=(),
        description="of the chosen sets only these rungs, by name; empty: all of them",
    )

    def offered(self) -> Mapping[str, Labelled]:
        """Return every rung of the chosen sets, by name."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _has_offered_rungs(self) -> LadderParameters:
        among(self.offered(), self.rungs)
        return self


def among(offered: Mapping[str, R], names: Collection[str]) -> dict[str, R]:
    """Return the rungs of these names, or all where none is named, in the order of the ladder.

    Raises
    ------
    ValueError
        A name is of no rung that is offered; the message has the nearest and all of them.
    """
    unknown = [f"'{name}'{did_you_mean(name, offered)}" for name in names if name not in offered]
    if unknown:
        raise ValueError(
            f"rungs: the chosen sets have no {', '.join(unknown)}; they have: {', '.join(offered)}"
        )
    return {name: rung for name, rung in offered.items() if name in names or not names}


@dataclass(frozen=True)
class Ladder(Generic[P, R]):
    """How a system's rungs become treatments: each part is made from parameters and a rung.

    ``named`` returns a rung's levels without its own name, which goes before them.
    """

    named: Callable[[P, R], Mapping[str, object]]
    stack: Callable[[P, R], StackPlan]
    workload: Callable[[P, R], Workload]
    instruments: Callable[[P, R], tuple[Instrument, ...]]

    def treatments(self, parameters: P, rungs: Mapping[str, R]) -> list[Treatment]:
        """Return a treatment for every rung, named as the mapping names it."""
        return [
            Treatment(
                name=f"{RUNG}={name}",
                label=rung.label,
                levels=self.levels(parameters, name, rung),
                stack=self.stack(parameters, rung),
                workload=self.workload(parameters, rung),
                instruments=self.instruments(parameters, rung),
            )
            for name, rung in rungs.items()
        ]

    def levels(self, parameters: P, name: str, rung: R) -> dict[str, str]:
        """Return a rung's levels, its own name first."""
        named = {RUNG: name, **self.named(parameters, rung)}
        return {factor: str(level) for factor, level in named.items()}

    def factors(self, parameters: P, rungs: Mapping[str, R]) -> dict[str, tuple[str, ...]]:
        """Return the levels of every factor, in the order in which rungs first have them."""
        rows = [self.levels(parameters, name, rung) for name, rung in rungs.items()]
        return {factor: tuple(dict.fromkeys(row[factor] for row in rows)) for factor in rows[0]}


def between(
    rungs: tuple[str, str],
    response: str,
    direction: Direction | None,
    claim: str,
    source: str = "",
    ratio: float | None = None,
    set_by_load: str = "",
    *,
    words: Mapping[str, str],
) -> Contrast:
    """Return the contrast of a response between two rungs, the first over the second.

    Parameters
    ----------
    direction, ratio
        As published; None where neither was.
    source : str
        Where the direction was published; it is left out where none was.
    words : mapping
        What responses are called in names of contrasts.
    """
    above, below = rungs
    return Contrast(
        name=f"{above} against {below}, {words[response]}",
        claim=claim,
        response=response,
        numerator={RUNG: above},
        denominator={RUNG: below},
        published_direction=direction,
        published_ratio=ratio,
        source=source if direction else "",
        set_by_load=set_by_load,
    )


def having(wanted: Iterable[Contrast], have: Collection[str]) -> list[Contrast]:
    """Return the contrasts whose rungs are all there."""
    return [each for each in wanted if _rungs(each) <= set(have)]


def _rungs(contrast: Contrast) -> set[str]:
    pairs = [contrast, *([contrast.interaction] if contrast.interaction else [])]
    sides: Sequence[Mapping[str, str]] = [
        side for pair in pairs for side in (pair.numerator, pair.denominator)
    ]
    return {side[RUNG] for side in sides}
