"""Ladders: experiments whose treatments are named rungs, each a bundle of settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import Field, model_validator

from perflab.instruments import Instrument
from perflab.load.workload import Workload
from perflab.parameters import Parameters, did_you_mean
from perflab.recordings import Contrast
from perflab.recordings.published_results import Direction
from perflab.stacks.plan import StackPlan
from perflab.trials.experiment import PresetParameters, RunParameters
from perflab.trials.plan import Treatment

RUNG = "rung"


class Labelled(Parameters):
    """The least that a rung must have: a label, its words for readers."""

    label: str


# Rungs, response, published direction, claim and its source, as :func:`between` takes them.
Row = tuple[tuple[str, str], str, Direction | None, str, str]
P = TypeVar("P", bound=RunParameters)
R = TypeVar("R", bound=Labelled)


class LadderParameters(PresetParameters):
    """Parameters of a ladder: the sets of rungs, and which of their rungs to take."""

    rungs: tuple[str, ...] = Field(
        default=(),
        description="of the chosen sets only these rungs, by name; empty: all of them",
    )

    def offered(self) -> Mapping[str, Any]:
        """Return every rung of the chosen sets, by name."""
        raise NotImplementedError

    @property
    def chosen_rungs(self) -> dict[str, Any]:
        """The rungs of a run by name, in the order of the ladder."""
        offered, names = self.offered(), self.rungs
        return {name: rung for name, rung in offered.items() if name in names or not names}

    @model_validator(mode="after")
    def _has_offered_rungs(self) -> LadderParameters:
        offered = self.offered()
        unknown = [f"'{n}'{did_you_mean(n, offered)}" for n in self.rungs if n not in offered]
        if unknown:
            raise ValueError(
                f"rungs: the chosen sets have no {', '.join(unknown)}; they have: "
                f"{', '.join(offered)}"
            )
        return self


def of_sets(
    rungs: Mapping[str, R], sets: Mapping[str, Collection[str]], names: Iterable[str]
) -> dict[str, R]:
    """Return the rungs of the named sets, each once, in the order of ``rungs``."""
    chosen = {rung for name in names for rung in sets[name]}
    return {name: rung for name, rung in rungs.items() if name in chosen}


def treatments_of(
    rungs: Mapping[str, R],
    parameters: P,
    levels: Callable[[P, R], Mapping[str, object]],
    stack: Callable[[P, R], StackPlan],
    workload: Callable[[P, R], Workload],
    instruments: Callable[[P, R], tuple[Instrument, ...]],
) -> list[Treatment]:
    """Return a treatment for every rung; each part comes from the parameters and the rung.

    ``levels`` returns a rung's levels without its own name, which comes first.
    """
    return [
        Treatment(
            name=f"{RUNG}={name}",
            label=rung.label,
            levels={
                RUNG: name,
                **{factor: str(level) for factor, level in levels(parameters, rung).items()},
            },
            stack=stack(parameters, rung),
            workload=workload(parameters, rung),
            instruments=instruments(parameters, rung),
        )
        for name, rung in rungs.items()
    ]


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
    """Return the contrast of a response between two rungs: the first over the second.

    ``direction`` and ``ratio`` are as published, or None. ``source`` says where the direction was
    published, and is left out without one. ``words`` are those for responses in names of contrasts.
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


def having(contrasts: Iterable[Contrast], have: Collection[str]) -> list[Contrast]:
    """Return the contrasts whose rungs are all in ``have``."""
    return [contrast for contrast in contrasts if _rungs(contrast) <= set(have)]


def _rungs(contrast: Contrast) -> set[str]:
    pairs = filter(None, (contrast, contrast.interaction))
    return {side[RUNG] for pair in pairs for side in (pair.numerator, pair.denominator) if side}
