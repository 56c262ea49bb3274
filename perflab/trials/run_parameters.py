"""The parameters that experiments share, and their differences from a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from perflab.parameters import Parameters
from perflab.recordings import Remark, UntilDecided, published_value
from perflab.recordings.design import LONGEST_MS, Design, Kind
from perflab.recordings.display import Lines, Shown, named_values, plain
from perflab.statistics.interim_analysis import planned

UNTIL_DECIDED = "until_decided"
Preset = Literal["quick", "published"]
Requests = Annotated[
    int, Field(ge=10, le=1_000_000, description="requests that count, in each trial")
]
WarmupRequests = Annotated[
    int, Field(ge=0, le=1_000_000, description="warm-up requests before these, recorded apart")
]
TrialSeconds = Annotated[
    float, Field(ge=0.1, le=600, description="seconds of each trial that count")
]
Blocks = Annotated[
    Annotated[int, Field(ge=1, le=1000)] | Literal["until_decided"],
    Field(
        description="how often everything is measured: a block holds one trial of each treatment, "
        "in random order, and in the next block backwards; 8 keep their power where one is not "
        "valid; until_decided: blocks are added until every claim is decided"
    ),
]
# Parameters of the call and not of the measurement: no run records them.
OF_THE_CALL = ("from_run", "resume", "wait_s")


class RunParameters(Parameters):
    """Parameters that every experiment has.

    Two processes of one program differ by 1 to 2% for as long as they live. With services started
    afresh for every block (``fresh_blocks``) this difference is noise, and no effect of the
    treatment (``lab_check`` shows it; T. Kalibera, R. Jones, ISMM 2013).
    """

    backend: Literal["auto", "docker", "process"] = Field(
        default="auto",
        description="where services run: in Docker, or as plain processes; auto takes Docker "
        "where an engine answers",
    )
    blocks: Blocks = 8
    least_blocks: int = Field(
        default=8,
        ge=1,
        le=200,
        description="with blocks = until_decided: the first interim analysis comes after so many "
        "blocks; below 6 it can show nothing",
    )
    most_blocks: int = Field(
        default=20,
        ge=6,
        le=200,
        description="with blocks = until_decided: the run ends after so many blocks, decided or "
        "not; there is an interim analysis every 6 blocks or sooner, and the more there are, the "
        "more certain each must be",
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        le=2**63 - 1,
        description="decides the random order of trials; none: a seed is drawn and recorded",
    )
    fresh_blocks: int = Field(
        default=1,
        ge=0,
        le=1000,
        description="start the services afresh before every n-th block, and count each start "
        "once; 0: never",
    )
    from_run: str | None = Field(
        default=None,
        description="show this run and measure nothing: its id, its beginning or last part, its "
        "folder, latest, latest:EXPERIMENT, or reference: the run that ships with the lab",
    )
    resume: str | None = Field(
        default=None, description="finish this run, which was interrupted or killed"
    )
    wait_s: float = Field(
        default=0.0,
        ge=0,
        le=604_800,
        description="seconds to wait while another measurement holds this machine",
    )

    @field_validator("blocks", mode="before")
    @classmethod
    def _a_number_or_until_decided(cls, blocks: Any) -> Any:
        if isinstance(blocks, str) and blocks != UNTIL_DECIDED and not blocks.strip().isdigit():
            raise ValueError(f"give a number of blocks, or {UNTIL_DECIDED}")
        return blocks

    @model_validator(mode="after")
    def _bounds_of_what_is_decided(self) -> RunParameters:
        if self.blocks != UNTIL_DECIDED:
            defaults = type(self).model_fields
            bounds = ("least_blocks", "most_blocks")
            changed = [name for name in bounds if getattr(self, name) != defaults[name].default]
            if changed:
                raise ValueError(
                    f"{' and '.join(changed)}: only with blocks = {UNTIL_DECIDED}; blocks is "
                    f"{self.blocks}"
                )
        elif self.least_blocks > self.most_blocks:
            raise ValueError(
                f"least_blocks = {self.least_blocks} is above most_blocks = {self.most_blocks}"
            )
        elif self.fresh_blocks > 1:
            raise ValueError(
                f"fresh_blocks = {self.fresh_blocks} needs a number of blocks: with blocks = "
                f"{UNTIL_DECIDED} every block needs a start of its own (fresh_blocks = 1)"
            )
        return self

    @property
    def planned_blocks(self) -> int:
        """How many blocks a run has; with ``until_decided``, at most."""
        return self.most_blocks if self.blocks == UNTIL_DECIDED else int(self.blocks)

    @property
    def block_design(self) -> Design:
        """How the trials of a block share its time; experiments with slices override this."""
        return Design()

    @property
    def finds_warmup(self) -> bool:
        """Whether the lab finds the warm-up; experiments that leave it open override this."""
        return False

    @property
    def until_decided(self) -> UntilDecided | None:
        """The rule by which blocks are added; None where their number is fixed."""
        if self.blocks != UNTIL_DECIDED:
            return None
        return planned(self.least_blocks, self.most_blocks)

    def __repr__(self) -> str:
        return repr(self._shown())

    def _repr_html_(self) -> str:
        return self._shown()._repr_html_()

    def _shown(self) -> Shown | Lines:
        """Return the parameters that differ from their defaults."""
        rows = []
        for name, field in type(self).model_fields.items():
            value = plain(getattr(self, name))
            default = plain(field.get_default(call_default_factory=True))
            if value != default:
                rows.append((name, value, default))
        if not rows:
            return Lines(["Every parameter has its default."])
        return named_values(rows, ("parameter", "value", "default"), "Changed parameters")


class ExplainedParameters(RunParameters):
    """Parameters of an experiment that can go on to look for what makes its differences."""

    why: bool = Field(
        default=False,
        description="after the comparison, look on the same services for what makes the "
        "difference: statements, functions, waits and counts of a request; some 20 s a treatment",
    )


class DesignParameters(RunParameters):
    """Parameters of an experiment whose trials can share the time of their block."""

    design: Kind = Field(
        default="auto",
        description="how the treatments of a block share its time: in whole trials, one after the "
        "other; in slices, which take turns within a second; "
        "auto: slices where load and response times allow them, else trials",
    )
    slice_ms: float | None = Field(
        default=None,
        ge=20,
        le=LONGEST_MS,
        description="with design = slices: length of a slice, of which the first fifth is not "
        "counted; none: as short as response times allow",
    )

    @model_validator(mode="after")
    def _slices_have_a_length(self) -> DesignParameters:
        if self.slice_ms is not None and self.design != "slices":
            raise ValueError(
                f"slice_ms = {self.slice_ms:g} needs design = slices; design is {self.design}"
            )
        return self

    @property
    def block_design(self) -> Design:
        """How the trials of a block share its time."""
        return Design(kind=self.design, slice_ms=self.slice_ms)


# Parameters that say how often, how long and where something is measured, and not what.
NO_SETTINGS = {
    *ExplainedParameters.model_fields, "preset", "sets", "rungs", "requests", "warmup_requests",
    "start_requests",
}  # fmt: skip


class PresetParameters(RunParameters):
    """Parameters with a preset: the study's values for whatever is not given.

    ``stated`` names the published row of each parameter that the study states: place, scenario and
    measure.
    """

    study: ClassVar[str] = ""
    stated: ClassVar[Mapping[str, tuple[str, str, str]]] = {}

    preset: Preset = Field(
        default="quick",
        description="published: take the published study's load for whatever is not given",
    )

    @classmethod
    def published_values(cls) -> dict[str, Any]:
        """Return what the preset sets: the published values of the parameters that there are."""
        return {
            name: published_value(cls.study, *row)
            for name, row in cls.stated.items()
            if name in cls.model_fields
        }

    def differences(self, **levels: Any) -> list[str]:
        """Return the differences of a run from the study, as sentences.

        A parameter that the study states must have the stated value. Any other must have its
        default, because one could else try settings until a size fits. ``levels`` has the level of
        each parameter that is a factor.
        """
        published = self.published_values()
        texts = []
        for name, field in type(self).model_fields.items():
            default = field.get_default()
            if name in levels and isinstance(default, tuple):
                default = default[0]
            value, expected = levels.get(name, getattr(self, name)), published.get(name, default)
            if name not in NO_SETTINGS and plain(value) != plain(expected):
                whose = "published" if name in published else "not published, by default"
                texts.append(f"{name} is {plain(value)} ({whose}: {plain(expected)})")
        return texts

    def not_compared(
        self,
        code: str,
        begin: str = "published sizes are not compared: ",
        end: str = "",
        **levels: Any,
    ) -> list[Remark]:
        """Return a remark with the :meth:`differences` from the study; none where there are none.

        Its text is between ``begin``, which says what they forbid, and ``end``.
        """
        texts = self.differences(**levels)
        return [Remark(code=code, text=f"{begin}{'; '.join(texts)}{end}")] if texts else []

    @model_validator(mode="before")
    @classmethod
    def _take_preset(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("preset") == "published":
            return {**cls.published_values(), **values}
        return values
