"""Ladders: experiments whose treatments are named rungs, each a bundle of settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field, field_validator, model_validator

from perflab.errors import RecordingError
from perflab.instruments import Instrument
from perflab.load.workload import Workload
from perflab.parameters import Parameters, did_you_mean, unknown
from perflab.recordings import Contrast
from perflab.recordings.contrast_rows import RUNG
from perflab.recordings.typed_rows import checked, lines_of
from perflab.stacks.plan import StackPlan
from perflab.trials.plan import Treatment
from perflab.trials.run_parameters import PresetParameters, RunParameters

P = TypeVar("P", bound=RunParameters)


class Labelled(Parameters):
    """The least that a rung must have: a label, its words for readers."""

    label: str


R = TypeVar("R", bound=Labelled)


@dataclass(frozen=True)
class Ladder(Generic[R]):
    """The rungs of a system by name, and which of them each set has."""

    rungs: Mapping[str, R]
    sets: Mapping[str, tuple[str, ...]]

    def chosen(self, names: Iterable[str]) -> dict[str, R]:
        """Return the rungs of the named sets, each once, in the order of the ladder."""
        chosen = {rung for name in names for rung in self.sets[name]}
        return {name: rung for name, rung in self.rungs.items() if name in chosen}


class LadderParameters(PresetParameters):
    """Parameters of a ladder: the sets of rungs, and which of their rungs to take."""

    ladder: ClassVar[Ladder[Any]]

    rungs: tuple[str, ...] = Field(
        default=(),
        description="of the chosen sets only these rungs, by name; empty: all of them",
    )

    sets: tuple[str, ...]

    def offered(self) -> Mapping[str, Any]:
        """Return every rung of the chosen sets, by name."""
        return self.ladder.chosen(self.sets)

    @property
    def chosen_rungs(self) -> dict[str, Any]:
        """The rungs of a run by name, in the order of the ladder."""
        offered, names = self.offered(), self.rungs
        return {name: rung for name, rung in offered.items() if name in names or not names}

    @field_validator("sets")
    @classmethod
    def _are_known(cls, sets: tuple[str, ...]) -> tuple[str, ...]:
        if problems := unknown("set", sets, cls.ladder.sets):
            raise ValueError("; ".join(problems))
        return sets

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


def read_ladder(file: Path, model: type[R]) -> Ladder[R]:
    """Read the rungs of a system from its table.

    Columns: ``rung`` (its name), ``sets`` (those that it is in), and fields of the model; an empty
    cell has the field's default.

    RecordingError where a row is not as wanted, or a name stands twice.
    """
    rungs: dict[str, R] = {}
    sets: dict[str, tuple[str, ...]] = {}
    for where, cells in lines_of(file):
        name = cells.pop("rung", "")
        if not name or name in rungs:
            raise RecordingError(f"{where}: rung = '{name}': each has a name of its own")
        for of_set in cells.pop("sets", "").split():
            sets[of_set] = (*sets.get(of_set, ()), name)
        rungs[name] = checked(model, cells, where)
    return Ladder(rungs, sets)


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


def having(contrasts: Iterable[Contrast], have: Collection[str]) -> list[Contrast]:
    """Return the contrasts whose rungs are all in ``have``."""
    return [contrast for contrast in contrasts if _rungs(contrast) <= set(have)]


def _rungs(contrast: Contrast) -> set[str]:
    pairs = filter(None, (contrast, contrast.interaction))
    return {side[RUNG] for pair in pairs for side in (pair.numerator, pair.denominator) if side}
